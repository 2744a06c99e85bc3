"""The middlewares in FastAPI and Django as they are installed; a unittest program of its own, for
its packages are no part of the other tests."""

import asyncio
import unittest

import django
from django.conf import settings
from django.http import HttpResponse
from django.test import AsyncClient as DjangoAsyncClient
from django.test import Client as DjangoClient
from django.urls import path
from fastapi import FastAPI, HTTPException
from fastapi.testclient import TestClient
from starlette.authentication import AuthCredentials, AuthenticationBackend, SimpleUser
from starlette.middleware.authentication import AuthenticationMiddleware

from alk_client import AlkClient, Settings
from alk_client.asgi import AuditMiddleware
from alk_client.django import AuditMiddleware as DjangoMiddleware
from tests.fakes import FakeService

service = FakeService()
alk = AlkClient(
    "http://127.0.0.1:8080", "alk_live_x", transport=lambda: service, settings=Settings(linger=0.01)
)


class Audit(DjangoMiddleware):
    client = alk


class SignIn:
    """In place of AuthenticationMiddleware of Django, which needs a database."""

    sync_capable = async_capable = True

    def __new__(cls, get_response):
        from asgiref.sync import iscoroutinefunction

        class User:
            is_authenticated = True
            pk = 7

        async def later(request):
            request.user = User()
            return await get_response(request)

        def now(request):
            request.user = User()
            return get_response(request)

        return later if iscoroutinefunction(get_response) else now


def view(request):
    alk.log("order.paid", resource="order:1")
    return HttpResponse(status=201)


async def async_view(request):
    return view(request)


def failing_view(request):
    raise KeyError("no")


urlpatterns = [path("sync", view), path("async", async_view), path("failing", failing_view)]


class ByName(AuthenticationBackend):
    async def authenticate(self, conn):
        return AuthCredentials(), SimpleUser("ann")


class Frameworks(unittest.TestCase):
    def setUp(self):
        service.__init__()

    def events(self):
        alk.flush(10)
        return [service.bodies[id] for id in service.stored]

    def shown(self):
        return [(one["action"], one["actor"]["id"], one["outcome"]) for one in self.events()]

    def test_fastapi(self):
        app = FastAPI()
        app.add_middleware(AuditMiddleware, client=alk)
        app.add_middleware(AuthenticationMiddleware, backend=ByName())

        @app.post("/orders/{id}")
        def order(id: int):
            alk.log("order.paid", resource=f"order:{id}")
            if id == 2:
                raise HTTPException(403)

        with TestClient(app) as client:
            self.assertEqual(client.post("/orders/1").status_code, 200)
            self.assertEqual(client.post("/orders/2").status_code, 403)
            self.assertEqual(client.get("/orders/1").status_code, 405)
        # The application has ended, which has flushed the queue.
        self.assertEqual(
            [(one["action"], one["outcome"]) for one in service.bodies.values()],
            [
                ("order.paid", "success"),
                ("http.post", "success"),
                ("order.paid", "success"),
                ("http.post", "failure"),
            ],
        )
        self.assertEqual({one["actor"]["id"] for one in service.bodies.values()}, {"ann"})

    def test_django(self):
        self.assertEqual(DjangoClient().post("/sync").status_code, 201)
        self.assertEqual(DjangoClient().post("/async").status_code, 201)
        self.assertEqual(DjangoClient().get("/nowhere").status_code, 404)
        failing = DjangoClient(raise_request_exception=False)
        self.assertEqual(failing.post("/failing").status_code, 500)
        paid, posted = ("order.paid", "7", "success"), ("http.post", "7", "success")
        self.assertEqual(self.shown(), [paid, posted, paid, posted, ("http.post", "7", "error")])

    def test_django_asynchronous(self):
        async def main():
            return [
                (await DjangoAsyncClient().post(path)).status_code for path in ("/async", "/sync")
            ]

        self.assertEqual(asyncio.run(main()), [201, 201])
        paid, posted = ("order.paid", "7", "success"), ("http.post", "7", "success")
        self.assertEqual(self.shown(), [paid, posted, paid, posted])


if __name__ == "__main__":
    settings.configure(
        ROOT_URLCONF=__name__,
        ALLOWED_HOSTS=["*"],
        SECRET_KEY="of the tests",
        MIDDLEWARE=[f"{__name__}.SignIn", f"{__name__}.Audit"],
    )
    django.setup()
    unittest.main()

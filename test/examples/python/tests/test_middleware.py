"""The middlewares over plain ASGI, and over objects of the form that Django hands out."""

import asyncio
import inspect
import subprocess
import sys
import types
import unittest
from unittest import mock

from alk_client.asgi import AuditMiddleware
from alk_client.django import AuditMiddleware as DjangoMiddleware

from .test_client import ROOT, ClientTest


class User:
    is_authenticated = True
    pk = 7
    email = "ann@example.com"


class Nobody:
    is_authenticated = False


def scope_of(method="POST", path="/orders/1", **more):
    return {"type": "http", "method": method, "path": path, "client": ("192.0.2.1", 99), **more}


def application(status=200, body=lambda scope: None):
    async def app(scope, receive, send):
        body(scope)
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    return app


async def ignore(message):
    pass


class MiddlewareTest(ClientTest):
    def setUp(self):
        super().setUp()
        self.alk = self.client()

    def events(self):
        self.alk.flush(10)
        return [self.service.bodies[id] for id in self.service.stored]


class Asgi(MiddlewareTest):
    def request(self, app, scope, **options):
        asyncio.run(AuditMiddleware(app, self.alk, **options)(scope, None, ignore))

    def test_a_request_is_an_event(self):
        self.request(application(201), scope_of(user=User()))
        [event] = self.events()
        self.assertEqual(event["action"], "http.post")
        self.assertEqual(event["actor"], {"id": "7", "type": "human", "email": "ann@example.com"})
        self.assertEqual(event["resource"], {"type": "path", "id": "/orders/1"})
        self.assertEqual(event["outcome"], "success")
        self.assertEqual(
            (event["metadata"]["status"], event["metadata"]["peer"]), (201, "192.0.2.1")
        )

    def test_the_status_says_the_outcome(self):
        for status in (302, 404, 403, 500):
            self.request(application(status), scope_of())
        outcomes = [event["outcome"] for event in self.events()]
        self.assertEqual(outcomes, ["success", "failure", "failure", "error"])

    def test_reads_are_not_logged_unless_they_are_asked_for(self):
        self.request(application(), scope_of("GET"))
        self.assertEqual(self.events(), [])
        self.request(application(), scope_of("GET"), methods=["get"])
        self.assertEqual(self.events()[0]["action"], "http.get")

    def test_an_error_of_the_application_is_logged_and_goes_on(self):
        def fail(scope):
            raise KeyError("no")

        with self.assertRaises(KeyError):
            self.request(application(body=fail), scope_of())
        self.assertEqual(self.events()[0]["outcome"], "error")

    def test_the_actor_is_known_to_what_the_application_logs(self):
        self.request(
            application(body=lambda scope: self.alk.log("order.paid", resource="order:1")),
            scope_of("GET", user=User()),
        )
        self.assertEqual(self.events()[0]["actor"]["id"], "7")

    def test_who_signs_in_while_it_is_answered_is_the_actor(self):
        def sign_in(scope):
            scope["user"] = User()

        self.request(application(body=sign_in), scope_of(path="/login", user=Nobody()))
        self.assertEqual(self.events()[0]["actor"]["id"], "7")

    def test_nobody_is_anonymous_and_an_actor_that_fails_fails_no_request(self):
        self.request(application(), scope_of(user=Nobody()))

        def broken(scope):
            raise KeyError("no")

        with self.assertLogs("alk_client", "ERROR"):
            self.request(application(), scope_of(), actor=broken)
        self.assertEqual([event["actor"]["id"] for event in self.events()], ["anonymous"] * 2)

    def test_no_path_gets_past_the_log(self):
        for path in ("/a\nb", "/%0A", "/" + "x" * 500, "/é", "/\udcff", ""):
            self.request(application(), scope_of(path=path))
        ids = [event["resource"]["id"] for event in self.events()]
        self.assertEqual(ids[:2], ["/a%0Ab", "/%250A"])
        self.assertEqual(len(ids[2]), 256)
        self.assertEqual(len(self.events()[2]["metadata"]["path"]), 501)
        self.assertEqual(ids[3:], ["/%C3%A9", "/%FF", "/"])

    def test_the_end_of_the_application_flushes(self):
        async def app(scope, receive, send):
            self.alk.log("shop.stopped", actor="system:shop", resource="shop:1")

        self.request(app, {"type": "lifespan"})
        self.assertEqual(len(self.service.stored), 1)

    def test_other_connections_pass(self):
        seen = []

        async def app(scope, receive, send):
            seen.append(scope["type"])

        self.request(app, {"type": "websocket"})
        self.assertEqual(seen, ["websocket"])


class Request:
    def __init__(self, method="POST", path="/orders/1", user=None):
        self.method = method
        self.path = path
        self.user = user
        self.META = {"REMOTE_ADDR": "192.0.2.1"}


class Response:
    def __init__(self, status=200):
        self.status_code = status


def asgiref():
    """The functions of it that the middleware uses, for a machine without Django."""

    def sync_to_async(function):
        async def call(*args):
            return function(*args)

        return call

    module = types.ModuleType("asgiref.sync")
    module.iscoroutinefunction = inspect.iscoroutinefunction
    module.markcoroutinefunction = lambda function: function
    module.sync_to_async = sync_to_async
    return {"asgiref": types.ModuleType("asgiref"), "asgiref.sync": module}


class Django(MiddlewareTest):
    def middleware(self, get_response):
        kind = type("Audit", (DjangoMiddleware,), {"client": self.alk})
        with mock.patch.dict(sys.modules, asgiref()):
            return kind(get_response)

    def test_a_request_is_an_event(self):
        response = self.middleware(lambda request: Response(403))(Request(user=User()))
        self.assertEqual(response.status_code, 403)
        [event] = self.events()
        self.assertEqual((event["action"], event["outcome"]), ("http.post", "failure"))
        self.assertEqual(event["actor"]["id"], "7")
        self.assertEqual(event["metadata"]["peer"], "192.0.2.1")

    def test_views_log_as_their_user_and_errors_go_on(self):
        def view(request):
            self.alk.log("order.paid", resource="order:1")
            raise KeyError("no")

        with self.assertRaises(KeyError):
            self.middleware(view)(Request(user=User()))
        first, second = self.events()
        self.assertEqual((first["action"], first["actor"]["id"]), ("order.paid", "7"))
        self.assertEqual((second["action"], second["outcome"]), ("http.post", "error"))

    def test_an_asynchronous_application_is_served_too(self):
        async def view(request):
            self.alk.log("order.paid", resource="order:1")
            return Response(201)

        response = asyncio.run(self.middleware(view)(Request(user=User())))
        self.assertEqual(response.status_code, 201)
        self.assertEqual([event["actor"]["id"] for event in self.events()], ["7", "7"])

    def test_reads_are_not_logged(self):
        self.middleware(lambda request: Response())(Request("GET"))
        self.assertEqual(self.events(), [])


class Imports(unittest.TestCase):
    def test_no_framework_is_imported(self):
        frameworks = {"django", "starlette", "fastapi", "asgiref"}
        text = (
            "import sys, alk_client.asgi, alk_client.django\n"
            f"print(sorted(set(sys.modules) & {frameworks!r}))"
        )
        ended = subprocess.run(
            [sys.executable, "-B", "-c", text], cwd=ROOT, capture_output=True, text=True
        )
        self.assertEqual(ended.stdout, "[]\n", ended.stderr)


if __name__ == "__main__":
    unittest.main()

"""Prints OCSF's own JSON Schemas of classes, by version: a line of JSON each.

    python3 ocsf_schemas.py <version,version> <class_uid,class_uid>

They come with the package ocsf-json-schema, which makes them of the schema that OCSF publishes; no
server is asked. A line is {version, class_uid, schema}.
"""

import json
import sys

from ocsf_json_schema import OcsfJsonSchemaEmbedded, get_ocsf_schema

versions, class_uids = (given.split(",") for given in sys.argv[1:])
for version in versions:
    schemas = OcsfJsonSchemaEmbedded(get_ocsf_schema(version=version))
    for class_uid in map(int, class_uids):
        name = schemas.lookup_class_name_from_uid(class_uid)
        schema = schemas.get_class_schema(class_name=name, profiles=[])
        print(json.dumps({"version": version, "class_uid": class_uid, "schema": schema}))

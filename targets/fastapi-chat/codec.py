"""How messages are written: JSON by the standard library or by orjson, or protobuf."""

import json
import re

import orjson
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

# The types that chat.proto uses.
KINDS = {
    "double": descriptor_pb2.FieldDescriptorProto.TYPE_DOUBLE,
    "uint32": descriptor_pb2.FieldDescriptorProto.TYPE_UINT32,
    "string": descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
}
FIELD = re.compile(r"^\s*(repeated )?(\w+) (\w+) = (\d+);$", re.MULTILINE)


def message_class(path):
    """The class of the one message of a .proto file: no compiler is needed for that."""
    text = open(path, encoding="utf-8").read()
    file = descriptor_pb2.FileDescriptorProto(name="chat.proto", syntax="proto3")
    message = file.message_type.add(name="ChatMessage")
    for repeated, kind, name, number in FIELD.findall(text):
        label = (
            descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED
            if repeated
            else descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL
        )
        message.field.add(name=name, number=int(number), type=KINDS[kind], label=label)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("ChatMessage"))


class Json:
    """JSON by the standard library."""

    is_text = True

    def encode(self, message):
        return json.dumps(message)

    def decode(self, data):
        return json.loads(data)


class Orjson:
    """JSON by orjson."""

    is_text = True

    def encode(self, message):
        return orjson.dumps(message).decode()

    def decode(self, data):
        return orjson.loads(data)


class Protobuf:
    """Messages of chat.proto."""

    is_text = False

    def __init__(self, path="chat.proto"):
        self.kind = message_class(path)

    def encode(self, message):
        return self.kind(**message).SerializeToString()

    def decode(self, data):
        message = self.kind.FromString(data)
        return json_format.MessageToDict(message, preserving_proto_field_name=True)


def named(codec, writer):
    """The codec of that name."""
    if codec == "protobuf":
        return Protobuf()
    return Orjson() if writer == "orjson" else Json()

"""gRPC for asyncio, whose messages are two and one integers of eight bytes: no protobuf is needed for that."""

import asyncio
import struct
import sys

import grpc


async def add(request, context):
    return sum(request)


async def main(endpoint):
    server = grpc.aio.server()
    method = grpc.unary_unary_rpc_method_handler(
        add,
        request_deserializer=struct.Struct("<qq").unpack,
        response_serializer=struct.Struct("<q").pack,
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bench.Calc", {"sum": method}),))
    server.add_insecure_port(endpoint)
    await server.start()
    await server.wait_for_termination()


asyncio.run(main(sys.argv[1]))

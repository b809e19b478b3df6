"""A broker that answers each call itself with the params it came with, and on purpose loses, doubles or swaps replies:
what the checker has to notice. fault: none, lose, double, swap_result (two calls get each other's result) or
swap_connection (a reply goes to another connection)."""

import asyncio
import json


class FakeBroker:
    def __init__(self, fault, every=50):
        self.fault = fault
        self.every = every
        self.seen = 0
        self.held = None
        self.writers = []

    async def serve(self):
        self.server = await asyncio.start_server(self.accept, "127.0.0.1", 0)
        return self.server.sockets[0].getsockname()[1]

    async def accept(self, reader, writer):
        self.writers.append(writer)
        while line := await reader.readline():
            self.answer(json.loads(line), writer)
        self.writers.remove(writer)
        writer.close()

    def answer(self, request, writer):
        response = {"jsonrpc": "2.0", "result": request.get("params"), "id": request["id"]}
        self.seen += 1
        due = self.seen % self.every == 0
        if self.fault == "lose" and due:
            return
        if self.fault == "swap_result" and (due or self.held):
            if not self.held:
                self.held = (writer, response)
                return
            other_writer, other = self.held
            self.held = None
            other["result"], response["result"] = response["result"], other["result"]
            self.send(other_writer, other)
        if self.fault == "swap_connection" and due:
            writer = next((other for other in self.writers if other is not writer), writer)
        self.send(writer, response)
        if self.fault == "double" and due:
            self.send(writer, response)

    @staticmethod
    def send(writer, message):
        writer.write(json.dumps(message).encode() + b"\n")

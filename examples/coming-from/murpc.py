"""A broker made from a configuration in JSON, one client that provides a method and publishes, and one that calls it,
without waiting and with, and hears of events."""

import json
import queue

import wirecall

CONFIG = """{
  "thread_count": 2,
  "keepalive_timeout_ms": 5000,
  "registration_timeout_ms": 10000,
  "call_timeout_ms": 30000,
  "max_message_size": 4096
}"""


def add(a: int, b: int) -> int:
    return a + b


broker = wirecall.Server("hub", broker=True, **json.loads(CONFIG))
with broker.serving() as uri, wirecall.connect(uri) as one, wirecall.connect(uri) as two:
    one.provide("add", add)

    # Several calls at once, answered in any order; a client of wirecall.aconnect awaits them instead.
    with two.batch() as calls:
        first, second = calls.add(5, 3), calls.add(a=40, b=2)
    print(first.result(), second.result())

    # One call, for whose result it waits, and one that nobody can answer.
    print(two.add(5, 3))
    try:
        two.substract(5, 3)
    except wirecall.MethodNotFound as error:
        print(error)

    # Events: who publishes them need not know who hears them.
    heard: queue.Queue[tuple[str, dict[str, float]]] = queue.Queue()
    two.subscribe("weather.*", lambda topic, value: heard.put((topic, value)))
    print("told", one.publish("weather.berlin", {"temp": 21.5}), "client")
    print(*heard.get())

    # What the broker has done.
    counters = two["rpc.stats"]()["counters"]
    print("counted by the broker:", counters["calls"] >= 3)

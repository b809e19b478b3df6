"""The checker notices each kind of broken broker, and has nothing to say of one that is not."""

import asyncio

from fake_broker import FakeBroker
from ledger import Ledger
from peers import Caller

EXPECTED = {"none": set(), "lose": {"lost"}, "double": {"doubled"}, "swap_result": {"misrouted"},
            "swap_connection": {"misrouted"}}


async def faults(kind):
    port = await FakeBroker(kind).serve()
    ledger = Ledger()
    callers = [await Caller(ledger).open(port) for _ in range(8)]
    pending = [caller.ask("work.echo") for _ in range(100) for caller in callers]
    for caller in callers:
        caller.writer.write_eof()
    # The broker closes each connection behind its last answer.
    await asyncio.gather(*(caller.reading for caller in callers))
    await asyncio.gather(*pending, return_exceptions=True)
    return ledger.close()


for kind, expected in EXPECTED.items():
    found = asyncio.run(faults(kind))
    kinds = {fault for fault, _ in found}
    print(f"{kind}: {len(found)} faults, {sorted(kinds)}")
    # What is swapped may be lost besides: its caller or its partner may have left.
    assert expected <= kinds and (expected or not kinds), (kind, expected, found[:5])

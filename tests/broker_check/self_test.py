"""The checker notices each kind of broken broker, and has nothing to say of one that is not."""

import asyncio

from fake_broker import FakeBroker
from ledger import Ledger
from peers import Caller, EventReader

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


def event_faults(*numbers_and_ids, resumed_at=0, last_id=None, known=()):
    """Of a reader that receives these values of one topic, of which the last is retained in the end."""
    ledger = Ledger()
    reader = EventReader(ledger, "a")
    published = [ledger.publish("a", True) for _ in range(3)]
    reader.resumed_at = resumed_at
    ledger.ids.update(known)
    for number, event_id in numbers_and_ids:
        ledger.receive_event(reader, published[number - 1], event_id)
    reader.last_id = last_id
    ledger.read_up_to(reader)
    if not last_id:
        ledger.read_all(reader)
    return [kind for kind, _ in ledger.faults]


assert event_faults((1, "e-1"), (2, None), (3, "e-3")) == []
assert event_faults((1, "e-1"), (2, "e-2")) == ["lost event"]
assert event_faults((1, "e-1"), (3, "e-3"), (3, "e-3")) == ["event"]
assert event_faults((3, "e-3"), (2, "e-2")) == ["event", "lost event"]
assert event_faults((3, "e-3"), resumed_at=3) == ["repeated"]
assert event_faults((2, None), last_id="e-2", known=[(("a", 3), "e-3")]) == []
assert event_faults((2, None), last_id="e-3", known=[(("a", 3), "e-3")]) == ["lost event"]

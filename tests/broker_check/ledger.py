"""What was asked of a broker, and how it ended; what it retains, and who has it. Each call is known by (connection,
sequence, nonce) and has to end exactly once, at its own caller, with its own nonce; each retained value is known by its
topic and number. Whatever else is seen is a fault. It knows of no socket and no broker."""

import itertools


class Ledger:
    def __init__(self):
        self.open = {}
        self.ended = set()
        self.abandoned = set()
        self.outcomes = {}
        self.published = {}  # by topic: the number of its last event, and of the last that is retained
        self.retained = {}
        self.ids = {}        # by topic and number, of what is retained: the id by which some reader has received it
        self.events = 0
        self.faults = []
        self.nonces = itertools.count(7919, 104729)

    def call(self, connection, sequence):
        """The params that identify a new call."""
        call = {"connection": connection, "sequence": sequence, "nonce": next(self.nonces)}
        self.open[connection, sequence] = call["nonce"]
        return call

    def fault(self, kind, text):
        self.faults.append((kind, text))

    def end(self, connection, response):
        """`connection` has received a response, whose id names the call as 'connection:sequence'."""
        try:
            asker, sequence = (int(part) for part in str(response.get("id")).split(":"))
        except ValueError:
            return self.fault("stray", f"connection {connection} received {str(response)[:200]}")
        if asker != connection:
            return self.fault("misrouted", f"connection {connection} received {str(response)[:200]}")
        key = (asker, sequence)
        if key in self.ended:
            return self.fault("doubled", f"{key} has ended before {str(response)[:200]}")
        if key not in self.open:
            return self.fault("stray", f"{key} was never asked: {str(response)[:200]}")
        nonce = self.open.pop(key)
        self.ended.add(key)
        if "error" in response:
            kind = response["error"]["code"]
        else:
            kind = "result"
            wanted = {"connection": asker, "sequence": sequence, "nonce": nonce}
            result = response.get("result")
            # The results of a stream may come together.
            for one in result if isinstance(result, list) and result else [result]:
                got = {name: one.get(name) for name in wanted} if isinstance(one, dict) else one
                if got != wanted:
                    self.fault("misrouted", f"{wanted} was answered with {str(got)[:200]}")
        self.outcomes[kind] = self.outcomes.get(kind, 0) + 1

    def abandon(self, connection):
        """The connection was closed by its caller: nobody is left to be told of its calls."""
        for key in [key for key in self.open if key[0] == connection]:
            del self.open[key]
            self.abandoned.add(key)

    def publish(self, topic, retain):
        """The params of the next event of a topic."""
        number = self.published.get(topic, 0) + 1
        self.published[topic] = number
        if retain:
            self.retained[topic] = number
        return {"topic": topic, "number": number, "retained": retain}

    def clear(self, topic):
        self.retained.pop(topic, None)

    def receive_event(self, reader, event, event_id):
        """A reader has received an event. What is retained comes once on a connection, and never an older value behind a
        newer one; it comes again at most to a reader that has come back, and only what its Last-Event-ID does not
        cover. All other events come once, in order."""
        self.events += 1
        topic, number = event["topic"], event["number"]
        what = f"reader {reader.number}, back {reader.resumed} times, received {number} of {topic}"
        if not event["retained"]:
            if number <= reader.live.get(topic, 0):
                self.fault("event", f"{what} behind {reader.live[topic]}")
            reader.live[topic] = number
            return
        if number <= reader.here.get(topic, 0) or number < reader.retained.get(topic, 0):
            self.fault("event", f"{what} behind {reader.retained[topic]}")
        reader.here[topic] = reader.retained[topic] = number
        if event_id and self.ids.setdefault((topic, number), event_id) != event_id:
            self.fault("event", f"{what} as {event_id}, others as {self.ids[topic, number]}")
        if reader.resumed_at and (topic, number) in self.ids and self.position(topic, number) <= reader.resumed_at:
            self.fault("repeated", f"{what}, which is {self.ids[topic, number]}, behind {reader.resumed_at}")

    def position(self, topic, number):
        return int(self.ids[topic, number].partition("-")[2])

    def read_up_to(self, reader):
        """A reader has each value that is retained up to the id that it has read last."""
        position = int(reader.last_id.partition("-")[2]) if reader.last_id else 0
        for topic, number in self.retained.items():
            if (topic, number) in self.ids and self.position(topic, number) <= position:
                self.require(reader, topic, number)

    def require(self, reader, topic, number):
        has = reader.retained.get(topic, 0)
        if has < number:
            self.fault("lost event", f"reader {reader.number}, at {reader.last_id}, has {has} of {topic}, not {number}")

    def read_all(self, reader):
        """A reader that has come back whenever it was cut has been sent all that is retained."""
        for topic, number in self.retained.items():
            self.require(reader, topic, number)

    def close(self):
        """Nothing more comes: what is open is lost."""
        for key in self.open:
            self.fault("lost", f"{key} has not ended")
        return self.faults

"""What was asked of a broker, and how it ended. Each call is known by (connection, sequence, nonce) and has to end exactly
once, at its own caller, with its own nonce; whatever else is seen is a fault. It knows of no socket and no broker."""

import itertools


class Ledger:
    def __init__(self):
        self.open = {}
        self.ended = set()
        self.abandoned = set()
        self.outcomes = {}
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

    def close(self):
        """Nothing more comes: what is open is lost."""
        for key in self.open:
            self.fault("lost", f"{key} has not ended")
        return self.faults

"""BentoML with its batching, whose wait it finds out itself."""

import time

import bentoml


@bentoml.service(workers=1, traffic={"timeout": 60}, logging={"access": {"enabled": False}})
class Model:
    @bentoml.api(batchable=True, max_batch_size=128, max_latency_ms=60_000, route="/")
    def model(self, numbers: list[int]) -> list[int]:
        time.sleep(1e-3 + 10e-6 * len(numbers))
        return numbers

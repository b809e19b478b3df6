// The simulated backend's own promises: the same seed gives the same history, another gives another, time passes only
// when nothing else can, and what it breaks is told.
#include "tests/runtime/simulated_backend.hpp"

#include <gtest/gtest.h>
#include <set>
#include <string>
#include <utility>

namespace wirecall::runtime {
namespace {

using std::chrono::milliseconds;

// What a listener and five talking connections saw, as text.
std::string history(unsigned seed, unsigned break_one_in) {
  SimulatedBackend backend{seed};
  backend.break_one_in(break_one_in);
  std::string seen;
  std::vector<Operation> submitted;
  std::vector<std::shared_ptr<SimulatedPeer>> peers;
  for (std::uint32_t slot = 0; slot < 5; ++slot) {
    auto [descriptor, peer] = backend.pair();
    const Handle handle{.slot = slot, .generation = 0};
    submitted.push_back({.kind = OperationKind::open, .handle = handle, .descriptor = descriptor, .buffer = {}});
    submitted.push_back({.kind = OperationKind::receive, .handle = handle, .buffer = {}});
    peers.push_back(peer);
  }
  for (int turn = 0; turn < 30; ++turn) {
    for (const auto& peer : peers) peer->send("0123456789");
    for (const Completion& completion : backend.turn(submitted, backend.now() + milliseconds{1})) {
      seen += std::to_string(completion.handle.slot) + ":";
      seen += completion.error != 0 ? "error" : std::to_string(completion.bytes.size());
      seen += completion.last ? "! " : " ";
    }
    submitted.clear();
  }
  return seen;
}

TEST(SimulatedBackend, a_seed_is_a_history) {
  std::set<std::string> histories;
  for (unsigned seed = 0; seed < 20; ++seed) {
    const std::string first = history(seed, 50);
    EXPECT_EQ(history(seed, 50), first) << "seed " << seed;
    histories.insert(first);
  }
  EXPECT_EQ(histories.size(), 20U);
}

TEST(SimulatedBackend, connections_break_when_they_are_made_to_each_once_and_never_otherwise) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(history(seed, 0).find("error"), std::string::npos) << "seed " << seed;
    const std::string broken = history(seed, 3);
    for (const char slot : std::string{"01234"}) {
      const std::string told = std::string{slot} + ":error! ";
      const std::size_t at = broken.find(told);
      ASSERT_NE(at, std::string::npos) << "seed " << seed << ": " << broken;
      EXPECT_EQ(broken.find(std::string{slot} + ":", at + 1), std::string::npos) << "seed " << seed << ": " << broken;
    }
  }
}

TEST(SimulatedBackend, time_passes_when_nothing_else_can_happen) {
  SimulatedBackend backend{1};
  const std::chrono::nanoseconds before = backend.now();
  static_cast<void>(backend.turn({}, backend.now() + milliseconds{7}));
  EXPECT_EQ(backend.now() - before, milliseconds{7});
  backend.wake();
  static_cast<void>(backend.turn({}, backend.now() + milliseconds{7}));
  EXPECT_EQ(backend.now() - before, milliseconds{7});
}

}  // namespace
}  // namespace wirecall::runtime

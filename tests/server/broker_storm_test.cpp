// The broker's storm (fuzz/broker_storm.hpp) led by seeds, and held against brokers that are broken on purpose.
// WIRECALL_SEED=<n> runs one seed alone.
#include "fuzz/broker_storm.hpp"

#include <cstdlib>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

namespace fuzz {
namespace {

constexpr unsigned kSeeds = 300;

std::vector<std::uint8_t> bytes_of(unsigned seed) {
  std::mt19937 random{seed};
  std::vector<std::uint8_t> bytes(200 + random() % 2000);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

std::string text_of(const std::vector<std::string>& faults) {
  std::string text;
  for (const std::string& one : faults) text += one + '\n';
  return text;
}

TEST(BrokerStorm, nothing_contradicts_what_is_due) {
  const char* const only = std::getenv("WIRECALL_SEED");
  const unsigned first = only != nullptr ? static_cast<unsigned>(std::strtoul(only, nullptr, 10)) : 0;
  std::size_t results = 0;
  std::size_t errors = 0;
  std::size_t events = 0;
  std::size_t items = 0;
  for (unsigned seed = first; seed < (only != nullptr ? first + 1 : kSeeds); ++seed) {
    const std::vector<std::uint8_t> bytes = bytes_of(seed);
    BrokerStorm storm{bytes};
    const std::vector<std::string>& faults = storm.run();
    ASSERT_TRUE(faults.empty()) << "WIRECALL_SEED=" << seed << '\n' << text_of(faults);
    results += storm.results();
    errors += storm.errors();
    events += storm.events();
    items += storm.items();
  }
  if (only != nullptr) return;
  // All of it has happened often, or the storm does too little.
  EXPECT_GT(results, kSeeds * 20);
  EXPECT_GT(errors, kSeeds * 10);
  EXPECT_GT(events, kSeeds);
  EXPECT_GT(items, kSeeds / 4);
}

TEST(BrokerStorm, a_broker_that_loses_doubles_swaps_or_breaks_lines_is_found_out) {
  for (const StormFault fault : {StormFault::loses, StormFault::doubles, StormFault::swaps, StormFault::breaks_lines}) {
    std::size_t found = 0;
    for (unsigned seed = 0; seed < 20; ++seed) {
      const std::vector<std::uint8_t> bytes = bytes_of(seed);
      BrokerStorm storm{bytes, fault};
      if (!storm.run().empty()) ++found;
    }
    EXPECT_GT(found, 10U) << static_cast<int>(fault);
  }
}

}  // namespace
}  // namespace fuzz

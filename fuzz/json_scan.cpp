// The scanner against its twin, the automaton and simdjson (json_scan_check.hpp).
#include "fuzz/json_scan_check.hpp"

#define FUZZ_FRESH value
#include "fuzz/mutator.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static fuzz::ScanCheck check;
  const std::string_view text = fuzz::text_of(data, size);
  // The same input is always cut alike.
  std::uint64_t seed = size;
  for (const char c : text) seed = seed * 31 + static_cast<unsigned char>(c);
  check(text, seed);
  return 0;
}

// A whole broker with peers of all framings, led by the input (broker_storm.hpp): what it does is chosen byte by byte,
// and nothing of it may contradict the model of what is due.
#include "fuzz/broker_storm.hpp"
#include "fuzz/texts.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4000) return 0;  // longer ones only take longer
  fuzz::BrokerStorm storm{{data, size}};
  const std::vector<std::string>& faults = storm.run();
  if (faults.empty()) return 0;
  for (const std::string& fault : faults) std::fprintf(stderr, "%s\n", fault.c_str());
  fuzz::found("a broker contradicts what is due", fuzz::text_of(data, size));
}

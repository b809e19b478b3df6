// CBOR over any bytes (fuzz/binary.hpp).
#include "fuzz/binary.hpp"
#include "fuzz/binary_maker.hpp"

#define FUZZ_MAKER fuzz::CborMaker
#define FUZZ_FRESH value
#include "fuzz/mutator.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::check_binary<wirecall::message::CborMessages>(fuzz::text_of(data, size));
  return 0;
}

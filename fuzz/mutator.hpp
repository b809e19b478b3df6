// libFuzzer's mutations mixed with our own for JSON. A fuzzer includes this once and defines FUZZ_FRESH as the function
// of JsonMaker, or of FUZZ_MAKER, that makes new texts for it. Empty without libFuzzer.
#pragma once

#ifdef WIRECALL_LIBFUZZER
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "fuzz/json_maker.hpp"
#include "fuzz/texts.hpp"

#ifndef FUZZ_MAKER
#define FUZZ_MAKER fuzz::JsonMaker
#endif

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t size_max);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t size_max,
                                               unsigned seed) {
  FUZZ_MAKER maker{seed};
  if (maker.random().one_in(2)) return LLVMFuzzerMutate(data, size, size_max);
  std::string text{fuzz::text_of(data, size)};
  if (maker.random().one_in(8)) {
    text = maker.FUZZ_FRESH();
  } else if (maker.random().one_in(3)) {
    text.insert(maker.random().below(text.size() + 1), maker.FUZZ_FRESH());
  }
  if (!maker.random().one_in(4)) maker.damage(text, size_max);
  text.resize(std::min(text.size(), size_max));
  if (!text.empty()) std::memcpy(data, text.data(), text.size());
  return text.size();
}
#endif

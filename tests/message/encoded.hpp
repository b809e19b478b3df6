// Shared by the tests of encodings: messages and batches as what a transcoder makes of their JSON.
#pragma once

#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "message/binary_transcoder.hpp"

namespace wirecall::message {

template <class Of = CborTranscoder>
std::string encoded(std::string_view json) {
  Of transcoder;
  Buffer text{json};
  Buffer out;
  EXPECT_TRUE(transcoder.from_json(text.padded(), Limits{}, out)) << json;
  return std::string{out.view()};
}

}  // namespace wirecall::message

// Messages written in Protocol Buffers whose memory fails at the N-th request, for every N until none is made any more:
// nothing of one that could not be written is in the next.
#include <gtest/gtest.h>
#include <new>
#include <string>

#include "message/message_codec.hpp"
#include "message/transcoder.hpp"
#include "tests/memory/failing_memory.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/limits.hpp"

namespace wirecall::memory {
namespace {

std::string encoded(message::Transcoder& transcoder, const Buffer& json, Buffer& out) {
  out.clear();
  transcoder.from_json(json.view(), Limits{}, out);
  return std::string{out.view()};
}

class ProtobufMemory : public testing::TestWithParam<Failing> {};

TEST_P(ProtobufMemory, nothing_of_a_message_that_failed_is_in_the_next) {
  Buffer first{R"({"jsonrpc":"2.0","id":1,"result":{"secret":[[[1,"two"],{"three":3}],")" + std::string(3000, 'x') +
               R"("]}})"};
  Buffer second{R"({"jsonrpc":"2.0","id":2,"result":[true,{"a":[]}]})"};
  static_cast<void>(first.padded());
  static_cast<void>(second.padded());
  const message::MessageCodec& codec = message::codec_of(Encoding::protobuf);
  Buffer out;
  const std::string wanted = encoded(*codec.make_transcoder(), second, out);
  bool failed = true;
  for (std::size_t number = 1; failed; ++number) {
    const auto transcoder = codec.make_transcoder();
    Buffer lost;
    failed = false;
    FailingMemory memory{number, GetParam()};
    try {
      transcoder->from_json(first.view(), Limits{}, lost);
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    memory.end();
    EXPECT_EQ(encoded(*transcoder, second, out), wanted) << "at " << number;
    ASSERT_TRUE(failed || number > 3) << "messages have to request memory";
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, ProtobufMemory, testing::Values(Failing::once, Failing::since));

}  // namespace
}  // namespace wirecall::memory

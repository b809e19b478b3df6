#include "base/text_block.hpp"

#include <gtest/gtest.h>
#include <vector>

namespace wirecall {
namespace {

TEST(TextBlock, each_byte_is_told_at_each_index) {
  for (std::ptrdiff_t at = 0; at < TextBlock::kBytes; ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      std::vector<char> text(TextBlock::kBytes, 'x');
      text[static_cast<std::size_t>(at)] = static_cast<char>(byte);
      const TextBlock block{text.data()};
      const bool ends = byte == '"' || byte == '\\';
      EXPECT_EQ(block.has_control(), byte < 0x20) << byte << " at " << at;
      EXPECT_EQ(block.ends_string(), ends || byte < 0x20) << byte << " at " << at;
      EXPECT_EQ(block.has_special(), ends || byte < 0x20 || byte > 0x7F) << byte << " at " << at;
    }
  }
}

}  // namespace
}  // namespace wirecall

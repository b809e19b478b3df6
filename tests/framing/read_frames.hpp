// The output of a length-delimited framing for bytes cut in every way: a line for each message, "!" for malformed
// input, "too large", "closed" when nothing more can be read.
#pragma once

#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framing/framing.hpp"

namespace wirecall::framing {

using Log = std::vector<std::string>;

/// `pieces` arrive one after the other, each in a heap block of its exact size, and then the stream ends.
template <class F, class... Settings>
Log read_frames(std::span<const std::string_view> pieces, const Settings&... settings) {
  F framing{settings...};
  Log log;
  std::string kept;
  for (const std::string_view piece : pieces) {
    const std::unique_ptr<char[]> block{new char[piece.size()]};
    if (!piece.empty()) std::memcpy(block.get(), piece.data(), piece.size());
    std::span<char> bytes{block.get(), piece.size()};
    while (!bytes.empty()) {
      const Found found = framing.next(bytes);
      std::string_view input{bytes.data(), bytes.size()};
      input.remove_prefix(found.skip);
      const std::string_view part = input.substr(0, found.size);
      bytes = bytes.subspan(found.skip + found.size);
      switch (found.find) {
        case Find::part: kept += part; break;
        case Find::message:
          log.push_back(kept + std::string{part});
          kept.clear();
          break;
        case Find::malformed:
          log.emplace_back("!");
          if (framing.recover(part) == Recovery::close) {
            log.emplace_back("closed");
            return log;
          }
          break;
        case Find::too_large: log.emplace_back("too large"); return log;
        case Find::nothing: EXPECT_NE(found.skip, 0U); break;
        default: ADD_FAILURE() << "an answer that these framings do not give"; return log;
      }
    }
  }
  const Found found = framing.end_of_stream();
  if (found.find == Find::malformed) log.emplace_back("!");
  return log;
}

/// Whole, cut in two at every place, and byte by byte.
template <class F, class... Settings>
void expect_frames(std::string_view input, const Log& expected, const Settings&... settings) {
  for (std::size_t cut = 0; cut <= input.size(); ++cut) {
    const std::string_view pieces[] = {input.substr(0, cut), input.substr(cut)};
    EXPECT_EQ(read_frames<F>(pieces, settings...), expected) << input << "\ncut at " << cut;
  }
  std::vector<std::string_view> bytes;
  for (std::size_t at = 0; at < input.size(); ++at) bytes.push_back(input.substr(at, 1));
  EXPECT_EQ(read_frames<F>(bytes, settings...), expected) << input << "\nbyte by byte";
}

}  // namespace wirecall::framing

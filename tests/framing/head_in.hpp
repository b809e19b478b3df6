// A head of HTTP, parsed from a heap block of its exact size: a sanitizer sees a read beyond it.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "framing/http1.hpp"

namespace wirecall::framing {

constexpr std::size_t kBytesMax = 4096;

/// The head's spans are valid for this object's lifetime.
template <class Head, HttpHeadRead (*read)(std::string_view, std::size_t, Head&) noexcept>
struct HeadIn {
  explicit HeadIn(std::string_view text, std::size_t bytes_max = kBytesMax)
      : block(new char[text.size()]),
        result((text.copy(block.get(), text.size()), read({block.get(), text.size()}, bytes_max, head))) {}
  std::unique_ptr<char[]> block;
  Head head;
  HttpHeadRead result;
};

}  // namespace wirecall::framing

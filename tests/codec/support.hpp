// Shared by the tests of the codec layer: texts on the heap without a spare byte, so that AddressSanitizer sees each
// read beyond them, and a reader over validated text.
#pragma once

#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>

#include "codec/json_reader.hpp"
#include "codec/json_scan.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::testing {

/// A text in a heap block of exactly its size.
class Exact {
 public:
  explicit Exact(std::string_view text) : bytes_(new char[text.size()]), size_(text.size()) {
    if (size_ != 0) std::memcpy(bytes_.get(), text.data(), size_);
  }
  [[nodiscard]] std::string_view view() const { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<char[]> bytes_;
  std::size_t size_;
};

/// A JSON text with its padding, validated, and a reader at its beginning.
class Text {
 public:
  explicit Text(std::string_view json) : text_(json) {
    const Scan scan = json::scan(text_.padded(), kDepthMax);
    EXPECT_EQ(scan.status, ScanStatus::complete) << json;
    reader_.reset(text_.view());
  }
  json::JsonReader* operator->() { return &reader_; }
  Reader& operator*() { return reader_; }
  [[nodiscard]] std::string_view view() const { return text_.view(); }

 private:
  Buffer text_;
  json::JsonReader reader_;
};

/// The data of the error that decoding `text` as T gives; "decoded" when there is none.
template <class T>
std::string failure(std::string_view text) {
  const Exact exact{text};
  const auto value = from_json<T>(exact.view());
  return value ? "decoded" : value.error().data();
}

template <class T>
std::string expected_by(std::string_view text) {
  Text source{text};
  T out{};
  return decode(*source, out) ? "decoded" : source->failure().expected;
}

}  // namespace wirecall::testing

// Shared by the tests of the envelope: text as the parser may see it at worst, and read_message by both scanners.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "message/envelope.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/message.hpp"

namespace wirecall::test {

/// Text on the heap with exactly the padding that parsers may rely on: a zero, then bytes that mean something in JSON.
/// AddressSanitizer reports a read beyond it; a byte used beyond the zero changes a result.
class PaddedText {
 public:
  explicit PaddedText(std::string_view text) : size_(text.size()), data_(new char[text.size() + kPaddingBytes]) {
    constexpr std::string_view kMisleading = R"(","id":7,"method":"x"}]}0123456789eE+-.truefalsenull\u0041)";
    if (!text.empty()) std::memcpy(data_, text.data(), text.size());
    data_[size_] = '\0';
    for (std::size_t i = 1; i < kPaddingBytes; ++i) data_[size_ + i] = kMisleading[i % kMisleading.size()];
  }
  PaddedText(PaddedText&& other) = delete;
  ~PaddedText() { delete[] data_; }

  [[nodiscard]] std::string_view view() const noexcept { return {data_, size_}; }

 private:
  std::size_t size_;
  char* data_;
};

inline void expect_same(const Received& a, const Received& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.fault, b.fault);
  EXPECT_EQ(a.present, b.present);
  EXPECT_EQ(a.batch_size, b.batch_size);
  EXPECT_EQ(static_cast<const void*>(a.text.data()), static_cast<const void*>(b.text.data()));
  EXPECT_EQ(a.text.size(), b.text.size());
  for (std::size_t i = 0; i < kMemberCount; ++i) {
    const auto member = static_cast<Member>(i);
    if (!a.has(member) || !b.has(member)) continue;
    EXPECT_EQ(static_cast<const void*>(a[member].data()), static_cast<const void*>(b[member].data()));
    EXPECT_EQ(a[member].size(), b[member].size());
  }
  if (a.has(Member::method) && a.kind != MessageKind::invalid) {
    EXPECT_EQ(a.method_escaped, b.method_escaped);
  }
  if (!a.has(Member::params) || a.kind == MessageKind::invalid) return;
  ASSERT_EQ(a.integer_count, b.integer_count);
  for (std::size_t i = 0; i < a.integer_count; ++i) {
    EXPECT_EQ(a.integers[i], b.integers[i]);
    EXPECT_EQ(a.integers_named, b.integers_named);
    if (a.integers_named) {
      EXPECT_EQ(static_cast<const void*>(a.integer_names[i].data), static_cast<const void*>(b.integer_names[i].data));
      EXPECT_EQ(a.integer_names[i].size, b.integer_names[i].size);
    }
  }
}

/// read_message, which must agree with its scalar twin, and its batch elements with those of BatchElements.
inline Scan read(const PaddedText& text, bool whole, Received& out, const Limits& limits = {}) {
  Received scalar;
  std::array<Received, 3> kept;
  const Scan scan = read_message(text.view(), limits, whole, out, kept);
  const Scan scan_scalar = message::read_message_scalar(text.view(), limits, whole, scalar);
  EXPECT_EQ(scan.status, scan_scalar.status) << text.view().substr(0, 200);
  EXPECT_EQ(scan.offset, scan_scalar.offset) << text.view().substr(0, 200);
  if (scan.status == ScanStatus::complete && scan_scalar.status == ScanStatus::complete) expect_same(out, scalar);
  if (scan.status == ScanStatus::complete && out.kind == MessageKind::batch) {
    BatchElements elements{out.text};
    Received element;
    for (std::size_t i = 0; i < std::min(kept.size(), out.batch_size); ++i) {
      EXPECT_TRUE(elements.next(element));
      expect_same(kept[i], element);
    }
  }
  return scan;
}

/// A message together with its text.
struct Message : Received {
  explicit Message(std::string_view text, const Limits& limits = {}) : source(text) {
    scan = read(source, true, *this, limits);
    EXPECT_EQ(scan.status, ScanStatus::complete) << text.substr(0, 200);
  }
  PaddedText source;
  Scan scan;
};

/// An object or array: the whole is complete; each shorter prefix, from nothing to all but the last byte, is
/// incomplete.
inline void expect_message_at_every_split(std::string_view text, const Limits& limits = {}) {
  SCOPED_TRACE(text);
  Received message;
  for (const bool whole : {true, false}) {
    for (std::size_t size = 0; size < text.size(); ++size) {
      const PaddedText part{text.substr(0, size)};
      ASSERT_EQ(read(part, whole, message, limits).status, ScanStatus::incomplete) << size;
    }
    const PaddedText all{text};
    const Scan scan = read(all, whole, message, limits);
    ASSERT_EQ(scan.status, ScanStatus::complete);
    ASSERT_EQ(scan.offset, text.size());
  }
}

/// Text that stops being JSON at `offset`: a prefix that ends before is incomplete, one with that byte is wrong there.
inline void expect_malformed_at_every_split(std::string_view text, std::size_t offset, const Limits& limits = {},
                                            ScanStatus status = ScanStatus::malformed) {
  SCOPED_TRACE(text);
  Received message;
  const bool top_level_scalar = text.find_first_of("{[") != text.find_first_not_of(" \t\r\n");
  for (const bool whole : {true, false}) {
    for (std::size_t size = 0; size <= text.size(); ++size) {
      const PaddedText part{text.substr(0, size)};
      const Scan scan = read(part, whole, message, limits);
      if (size > offset) {
        ASSERT_EQ(scan.status, status) << size;
        ASSERT_EQ(scan.offset, offset) << size;
      } else if (!whole || !top_level_scalar) {
        ASSERT_EQ(scan.status, ScanStatus::incomplete) << size;
      }
    }
  }
}

}  // namespace wirecall::test

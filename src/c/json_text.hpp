// JsonText: text of the program's that has to be one JSON value. It is copied, since the scanner needs readable bytes
// behind what it reads, and white space around the value is left out. A value.
#pragma once

#include <string_view>

#include "wirecall/bytes.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/limits.hpp"

namespace wirecall::c {

class JsonText {
 public:
  explicit JsonText(std::string_view text) : text_(trimmed(text)) {
    const std::string_view padded = text_.padded();
    const Scan scan = json_codec().scan(padded, kDepthMax);
    valid_ = !padded.empty() && scan.status == ScanStatus::complete && scan.offset == padded.size();
  }

  [[nodiscard]] bool is_valid() const noexcept { return valid_; }
  [[nodiscard]] std::string_view view() const noexcept { return text_.view(); }

 private:
  static std::string_view trimmed(std::string_view text) noexcept {
    constexpr std::string_view kSpace = " \t\r\n";
    const std::size_t from = text.find_first_not_of(kSpace);
    return from == text.npos ? std::string_view{} : text.substr(from, text.find_last_not_of(kSpace) - from + 1);
  }

  Buffer text_;
  bool valid_ = false;
};

}  // namespace wirecall::c

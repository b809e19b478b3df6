// ContentLength: the framing of the Language Server Protocol's base protocol: header fields that end in CR LF, among
// them Content-Length, an empty line, and as many bytes of JSON (docs/wire.md "Content-Length framing"). Fields stand
// in any order and are named in any case; those that are not Content-Length are passed over, Content-Type with its
// charset among them: messages are UTF-8 whatever it says, and are checked to be. A header that is malformed leaves no
// place to resume. One connection each, on its thread.
#pragma once

#include "framing/framing.hpp"
#include "wirecall/limits.hpp"

namespace wirecall::framing {

class ContentLength final : public Framing {
 public:
  /// `limits` outlive the framing.
  explicit ContentLength(const Limits& limits) noexcept : limits_(&limits) {}

  [[nodiscard]] std::string_view name() const noexcept override { return "content-length"; }
  Found next(std::span<char> bytes) override;
  /// The codec is never asked for an end here.
  Found unfinished(std::string_view) override { return {Find::lost, 0, 0}; }
  Recovery recover(std::string_view) override;
  Found end_of_stream() override;
  [[nodiscard]] bool begun() const noexcept override { return header_ != 0 || state_ != State::line; }
  [[nodiscard]] std::string_view cause() const noexcept override { return cause_; }
  [[nodiscard]] bool in_head() const noexcept override { return header_ != 0 && state_ != State::body; }
  /// Clients of the Language Server Protocol do.
  [[nodiscard]] bool strict_peers() const noexcept override { return true; }
  [[nodiscard]] std::size_t head_bytes() const noexcept override;
  void seal(Buffer& out, std::size_t begin, bool json) override;

 private:
  enum class State : std::uint8_t {
    line,          // at the start of a field, or of the line that ends the header
    name,          // in a field's name
    before_value,  // of Content-Length, at white space
    digits,        // of Content-Length
    after_digits,  // at white space behind them
    passing,       // in the value of another field
    line_feed,     // behind the CR that ends a field
    last_feed,     // behind the CR that ends the header
    body,
    broken,  // the header was malformed
  };

  bool step(char c) noexcept;
  [[nodiscard]] std::string_view why_broken(State in, char c) const noexcept;
  bool end_field() noexcept;

  const Limits* limits_;
  std::size_t length_ = 0;       // of this field; within a message: what has not come of it
  std::size_t agreed_ = 0;       // of the fields before it
  std::uint32_t header_ = 0;     // bytes of the header that have come
  std::uint8_t name_bytes_ = 0;  // that have come and are those of Content-Length, or kOtherName
  bool known_ = false;           // a Content-Length has been given
  State state_ = State::line;
  std::string_view cause_;  // why it is broken
};

}  // namespace wirecall::framing

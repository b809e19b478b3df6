// BodyReader: the bodies of HTTP messages, of requests or responses, one at a time, whichever way the end of each is
// known. A body that has come at once stays where it lies; of others the parts are kept here.
// Owned by who reads the connection; knows no connection. One thread.
#pragma once

#include <span>

#include "framing/http1.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/loop.hpp"

namespace wirecall::net {

class BodyReader {
 public:
  enum class Step : std::uint8_t {
    more,       ///< the body goes on
    complete,   ///< the body is in `in_place`, or kept
    discarded,  ///< it has ended, and nobody wanted it
    malformed,
    too_large,  ///< more than `bytes_max`; what came last is not kept
  };
  struct Found {
    std::size_t used;  ///< bytes of the input
    Step step;
    std::span<char> in_place = {};  ///< the whole body, where it lies in the input; else no span at all
  };

  /// The body of such a message begins, if it has any; `endless` when it goes on to the end of the connection.
  void begin(const framing::HttpFields& head, bool endless = false) noexcept {
    chunks_ = {};
    left_ = head.content_length;
    ending_ = head.chunked ? Ending::chunks : endless ? Ending::close : left_ != 0 ? Ending::length : Ending::none;
  }
  /// Nobody wants what is still to come of it, or somebody does after all.
  void discard(bool discards) noexcept { discards_ = discards; }
  /// No more of it is read.
  void stop() noexcept { ending_ = Ending::none; }

  /// Whether a body has begun and not ended.
  [[nodiscard]] bool reading() const noexcept { return ending_ != Ending::none; }
  [[nodiscard]] bool ends_with_connection() const noexcept { return ending_ == Ending::close; }
  [[nodiscard]] bool discards() const noexcept { return discards_ && reading(); }

  /// Reads on, in a body that has begun. At most `bytes_max` bytes are kept, or, of chunks, discarded.
  Found read(std::span<char> input, std::size_t bytes_max, Loop& loop) {
    if (ending_ == Ending::length && left_ <= input.size() && kept_.empty() && !discards_) [[likely]] {
      ending_ = Ending::none;
      return {left_, Step::complete, input.first(left_)};
    }
    return read_part(input, bytes_max, loop);
  }
  /// What has been kept of it.
  [[nodiscard]] Buffer& kept() noexcept { return kept_; }
  [[nodiscard]] const Buffer& kept() const noexcept { return kept_; }

  /// Bytes of bodies read since this was asked last, modulo 2^32.
  [[nodiscard]] std::uint32_t take_progress() noexcept { return std::exchange(progress_, 0); }

 private:
  enum class Ending : std::uint8_t { none, length, chunks, close };

  Found read_part(std::span<char> input, std::size_t bytes_max, Loop& loop);
  Step keep(std::span<char> part, std::size_t bytes_max, Loop& loop);
  Step end() noexcept;

  Buffer kept_;
  std::size_t left_ = 0;  // of a length: bytes that have not come; of chunks: those that have been discarded
  framing::ChunkedBody chunks_;
  std::uint32_t progress_ = 0;
  Ending ending_ = Ending::none;
  bool discards_ = false;
};

}  // namespace wirecall::net

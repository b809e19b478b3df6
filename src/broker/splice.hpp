// Splice: a message as it came, with a few spans changed: another id, another timeout_ms, without `to`, with another
// `from`, or none. The bytes between stay what the sender wrote (docs/broker.md "What is relayed"). Pure.
#pragma once

#include <array>
#include <optional>

#include "wirecall/bytes.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/message.hpp"

namespace wirecall::broker {

/// Several changes of one object's members. `text` and what it is told of it outlive it.
class Splice {
 public:
  /// `text` is one JSON object, valid.
  explicit Splice(std::string_view text) noexcept : text_(text) {}

  /// The member's value, a view into the text, becomes `by`.
  void replace(std::string_view value, std::string_view by) noexcept { add({value, by, false}); }
  /// A member comes before all others: its name with quotes and colon, and its value.
  void prepend(std::string_view name, std::string_view value) noexcept {
    for (const std::string_view part : {name, value, std::string_view{","}}) add({text_.substr(1, 0), part, false});
  }
  /// The member whose value that is goes. Its name holds no quote.
  void remove(std::string_view value) noexcept { add({value, {}, true}); }
  /// Whether there is no room for another change.
  [[nodiscard]] bool is_full() const noexcept { return count_ == kChangesMax; }
  /// Appends the text as changed.
  void append_to(Buffer& out) const;

 private:
  struct Change {
    std::string_view value;
    std::string_view by;
    bool removes;
  };
  void add(const Change& change) noexcept;

  static constexpr std::size_t kChangesMax = 8;

  std::string_view text_;
  std::array<Change, kChangesMax> changes_;  // in the order of the text
  std::size_t count_ = 0;
};

/// A provider's response as its caller may see it: `data.origin` of an error says which side made it, and that of a
/// provider's own error would speak of another connection than the caller's.
struct CleanResponse {
  std::string_view text;
  std::string_view id;     ///< a view into it
  std::string_view error;  ///< likewise; empty for a result
  int code = 0;            ///< of its error; 0 for a result
};

/// What becomes of an error that another side has made of itself, which has a `data.origin`.
struct OwnErrorEdits {
  std::string_view origin = {};  ///< of `data`, JSON text; empty for none
  bool keeps_origin = false;     ///< it stays as it is
  bool maybe = false;            ///< `data.delivered` is that
};

/// The response without `data.origin`, or with that which `edits` say, where there was one; `changed` holds its text
/// then. A `data.delivered` without an origin is the provider's own. `response` is well formed.
[[nodiscard]] CleanResponse without_origin(const Received& response, Reader& reader, Buffer& changed,
                                           const OwnErrorEdits& edits = {});

/// The outcomes that are in `array`, which another node has answered to rpc.call_all, as they are told here: without
/// the brackets, each with a member `node`, which has that value in JSON, and an error that the node has made of itself
/// is remote. Nothing where it is no such array. Throws std::bad_alloc.
[[nodiscard]] std::optional<Buffer> outcomes_of_node(std::string_view array, std::string_view node, Reader& reader);

}  // namespace wirecall::broker

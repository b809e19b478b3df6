// Rendering: an answer that lists whatever there is, written piece by piece, so that a turn pays for as many of the
// pieces as the share of the connection that asks allows. It keeps its place by name: what comes or goes meanwhile is
// in the answer or is not. Kept by whoever asks, between two turns; what it tells of outlives it. One thread (the
// loop's).
#pragma once

#include "wirecall/bytes.hpp"
#include "wirecall/principal.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::rpc {

class Authority;
class MessageSink;
struct LoopContext;

/// Who asks, as far as that has to be known.
struct Asker {
  std::shared_ptr<const Authority> authority;  ///< that knows the principal; null where nobody has to say who he is
  const Principal* principal = nullptr;
};

class Rendering {
 public:
  Rendering() = default;
  Rendering(Rendering&&) = delete;
  virtual ~Rendering() = default;

  /// Writes more of it, at the expense of the sink's share, until it is done or larger than `bytes_max`. False when
  /// it is others' turn first.
  [[nodiscard]] bool advance(MessageSink& sink, std::size_t bytes_max);
  /// All of it, once it is done.
  [[nodiscard]] std::string_view text() const noexcept { return text_.view(); }

 protected:
  /// Appends the next piece to `text_`, or nothing where that is hidden from who asks. False when it was the last.
  [[nodiscard]] virtual bool write_piece() = 0;

  Buffer text_;
  std::size_t more_steps_ = 0;  ///< of the share, that the piece just written has cost besides

 private:
  bool done_ = false;
};

/// One that is there as it is made.
class PlainText final : public Rendering {
 public:
  explicit PlainText(std::string_view text) { text_.append(text); }

 private:
  bool write_piece() override { return false; }
};

/// The first of the process's own methods whose name is behind `after`; null for none.
[[nodiscard]] const Method* next_own(LoopContext& loop_context, const Registry& registry, std::string_view after);

}  // namespace wirecall::rpc

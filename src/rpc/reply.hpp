// Reply: one answer being written, wherever it goes: the sink, a batch that is being dispatched, or the gap that a
// waiting call has left in one. Call and ReplySink share it, so that both keep the same rules: one answer a call,
// within max_message_size, never half a one.
#pragma once

#include <algorithm>

#include "message/replaced.hpp"
#include "message/reply_text.hpp"
#include "message/transcoder.hpp"
#include "rpc/load_bytes.hpp"
#include "rpc/loop_context.hpp"
#include "rpc/message_sink.hpp"
#include "wirecall/bytes.hpp"

namespace wirecall::rpc {

class CallerLink;

/// The replies of a batch in the order of its requests: in JSON each followed by a comma, else one behind the other.
/// Waiting calls leave gaps.
struct BatchReply {
  struct Gap {
    std::size_t at;  ///< where in `text` its reply belongs
    Buffer reply;
  };
  /// `text` may have memory of an earlier one's.
  void begin(MessageForm of_replies) {
    text.clear();
    form = of_replies;
    raw = false;
    if (form.natively) return;
    text.push_back('[');
    bytes = 1;
  }

  Buffer text;
  std::vector<Gap> gaps;
  std::vector<std::shared_ptr<CallerLink>> links;  ///< of calls with results, which are answered when the batch is sent
  std::size_t bytes = 0;                           ///< of text and filled gaps together
  BatchBytes held;
  std::size_t count = 0;  ///< of replies
  std::size_t unanswered = 0;
  std::vector<std::string_view> too_large;  ///< listings of wirecall's own that have not fitted any more
  MessageForm form;
  bool raw = false;         ///< some of them hold text of others, and so perhaps line breaks
  bool dispatched = false;  ///< all its calls have been made
};

/// What takes the place of a reply that would make its message larger than max_message_size.
[[nodiscard]] Error reply_too_large();

class Reply {
 public:
  /// To the sink.
  Reply(MessageSink* sink, LoopContext* loop_context, MessageForm form, std::size_t bytes_max) noexcept
      : sink_(sink), loop_context_(loop_context), bytes_max_(bytes_max), form_(form) {}
  /// Into a batch: its text, or one of its gaps.
  Reply(Buffer& array, BatchReply& batch, LoopContext* loop_context, std::size_t bytes_max) noexcept
      : sink_(nullptr),
        array_(&array),
        batch_(&batch),
        loop_context_(loop_context),
        bytes_max_(bytes_max),
        form_(batch.form) {}

  [[nodiscard]] MessageForm form() const noexcept { return form_; }
  [[nodiscard]] bool is_native() const noexcept { return form_.natively; }

  /// No value that is larger as JSON fits a result that is begun now.
  [[nodiscard]] std::size_t json_bytes_max() const noexcept {
    return is_native() || batch_ == nullptr ? bytes_max_ : bytes_max_ - std::min(bytes_max_, batch_->bytes);
  }
  /// Whether a listing of that name has been too large for the rest of the array, which only becomes smaller.
  [[nodiscard]] bool is_too_large(std::string_view listing) const noexcept {
    return batch_ != nullptr && std::ranges::find(batch_->too_large, listing) != batch_->too_large.end();
  }
  /// `listing` is a constant.
  void set_too_large(std::string_view listing) {
    if (batch_ != nullptr && !is_too_large(listing)) batch_->too_large.push_back(listing);
  }

  /// Where the result's value is to be written, in the codec of its form. A result already begun is dropped.
  Buffer& begin() {
    open();
    if (is_native()) [[unlikely]] {
      writer().begin_result(*out_, place());
    } else {
      message::begin_result(*out_);
    }
    return *out_;
  }
  /// Of the value of a result that has been begun.
  void append(std::string_view encoded) {
    raw_ = true;
    out_->append(encoded);
  }
  /// The same of a value that is JSON text.
  void append_json(std::string_view json);
  /// Ends the result. False when it is too large: it is dropped then, and an error is due.
  [[nodiscard]] bool end(std::string_view id_json) {
    if (!append_end(id_json)) {
      discard();
      return false;
    }
    close();
    return true;
  }
  /// Its two halves: the text, which is taken back when it is too large (false), and the sending.
  [[nodiscard, gnu::always_inline]] bool append_end(std::string_view id_json) {
    const std::size_t value_end = out_->size();
    if (is_native()) [[unlikely]] {
      writer().end_reply(*out_, id_json);
    } else {
      message::end_reply(*out_, id_json);
    }
    if (bytes_with_array() <= bytes_max_) [[likely]]
      return true;
    out_->truncate(value_end);
    return false;
  }
  /// A whole reply with an integer as its result, but for the sending. False when it is too large.
  [[nodiscard, gnu::always_inline]] bool append_integer(std::int64_t value, std::string_view id_json) {
    open();
    if (is_native()) [[unlikely]] {
      writer().append_integer_result(*out_, value, id_json, place());
    } else {
      message::write_integer_result(*out_, value, id_json);
    }
    if (bytes_with_array() <= bytes_max_) [[likely]]
      return true;
    discard();
    return false;
  }
  /// The same with a packed value of at most MessageWriter::kPackedResultMax bytes, natively.
  [[nodiscard]] bool append_packed(std::string_view packed, std::string_view id_json) {
    open();
    writer().append_packed_result(*out_, packed, id_json, place());
    if (bytes_with_array() <= bytes_max_) [[likely]]
      return true;
    discard();
    return false;
  }
  /// Without memory it either throws, and the reply is still begun, or the sink knows what to do.
  [[gnu::always_inline]] void close() {
    if (sink_ != nullptr) [[likely]] {
      out_ = nullptr;
      return raw_ ? sink_->close_message_as(form_) : sink_->close_compact_as(form_);
    }
    close_in_batch();
  }
  /// The same of a result that a Writer alone has written, or an integer.
  [[gnu::always_inline]] void close_written() {
    if (sink_ != nullptr) [[likely]] {
      out_ = nullptr;
      return sink_->close_compact_as(form_);
    }
    close_in_batch();
  }
  /// A whole response of another's, in JSON, with the part of it that `id` views replaced. False when it is too large.
  [[nodiscard]] bool response(std::string_view text, std::string_view id, std::string_view id_json) {
    open();
    raw_ = true;
    if (is_native()) [[unlikely]] {
      write_native(text, id, id_json);
    } else {
      message::append_replaced(*out_, text, id, id_json);
    }
    if (bytes_with_array() > bytes_max_) {
      discard();
      return false;
    }
    close();
    return true;
  }
  /// A whole error reply, in place of a result that may have been begun. `data_json` is compact JSON text, or empty.
  /// An error that is too large becomes -32006, unless it is smaller than that.
  void error(int code, std::string_view message, std::string_view data_json, std::string_view id_json);
  void error(const Error& error, std::string_view id_json) {
    this->error(error.code(), error.message(), error.data(), id_json);
  }
  /// -32700, -32600 or -32601 without data.
  void plain_error(ErrorCode code, std::string_view id_json) {
    if (is_native()) [[unlikely]]
      return error(static_cast<int>(code), message_of(code), {}, id_json);
    open();
    message::write_plain_error(*out_, code, id_json);
    close();
  }
  /// Drops a result that has been begun, if one has.
  void discard() noexcept;
  [[nodiscard]] bool begun() const noexcept { return out_ != nullptr; }

 private:
  /// Of the message that this reply would end.
  [[nodiscard]] std::size_t bytes_with_array() const noexcept {
    // With the closing bracket, or the head.
    const std::size_t array_bytes =
        batch_ != nullptr ? batch_->bytes + (is_native() ? message::NativeTranscoder::kBatchHeadBytesMax : 1) : 0;
    return out_->size() - start_ + array_bytes;
  }
  void close_in_batch() {
    if (!is_native()) out_->push_back(',');
    batch_->bytes += out_->size() - start_;
    batch_->raw = batch_->raw || raw_;
    ++batch_->count;
    out_ = nullptr;
  }
  void open() {
    if (begun()) [[unlikely]]
      discard();
    out_ = sink_ != nullptr ? &sink_->open_message() : array_;
    start_ = out_->size();
  }
  [[nodiscard]] message::MessageWriter::Place place() const noexcept {
    using Place = message::MessageWriter::Place;
    return batch_ != nullptr ? Place::element : Place::message;
  }
  [[nodiscard]] message::MessageWriter& writer() { return loop_context_->codecs.message_writer(form_.sent); }
  void write_native(std::string_view text, std::string_view id, std::string_view id_json);
  void write(int code, std::string_view message, std::string_view data_json, std::string_view id_json);

  MessageSink* sink_;
  Buffer* array_ = nullptr;
  BatchReply* batch_ = nullptr;
  LoopContext* loop_context_;
  std::size_t bytes_max_;
  Buffer* out_ = nullptr;
  std::size_t start_ = 0;
  MessageForm form_;
  bool raw_ = false;  // it holds text of others, and so perhaps line breaks
};

}  // namespace wirecall::rpc

#include "rpc/reply.hpp"

#include "message/own_error.hpp"
#include "rpc/memory_budget.hpp"

namespace wirecall::rpc {

Error reply_too_large() { return message::too_large_reply(); }

void Reply::error(int code, std::string_view message, std::string_view data_json, std::string_view id_json) {
  open();
  raw_ = raw_ || !data_json.empty();
  write(code, message, data_json, id_json);
  if (bytes_with_array() > bytes_max_ && (!data_json.empty() || message.size() > 64)) [[unlikely]] {
    const Error too_large = reply_too_large();
    if (message.size() + data_json.size() > too_large.message().size() + too_large.data().size()) {
      discard();
      open();
      write(too_large.code(), too_large.message(), too_large.data(), id_json);
    }
  }
  close();
}

void Reply::append_json(std::string_view json) {
  if (!is_native()) return append(json);  // as text of others: schemas are given by those who register
  Writer& writer = loop_context_->codecs.writer_of(form_);
  writer.reset(*out_);
  writer.json(json);
}

void Reply::write_native(std::string_view text, std::string_view id, std::string_view id_json) {
  Buffer json;
  message::append_replaced(json, text, id, id_json);
  Limits unlimited;
  unlimited.max_message_size = bytes_max_;
  LoopCodecs& codecs = loop_context_->codecs;
  const bool done = batch_ != nullptr ? codecs.native(form_.sent).element_from_json(json.padded(), unlimited, *out_)
                                      : codecs.transcoder(form_.sent).from_json(json.padded(), unlimited, *out_);
  if (!done) writer().append_error(*out_, Error{ErrorCode::internal_error}, id_json, place());
}

void Reply::write(int code, std::string_view message, std::string_view data_json, std::string_view id_json) {
  if (!is_native()) return write_error(*out_, code, message, data_json, id_json);
  writer().append_error(*out_, Error{code, std::string{message}, std::string{data_json}}, id_json, place());
}

void Reply::discard() noexcept {
  if (out_ == nullptr) return;
  if (sink_ != nullptr) {
    sink_->discard_message();
  } else {
    array_->truncate(start_);
    // A gap has memory of its own, and there are many: what has not fitted leaves none of it behind.
    if (start_ == 0 && array_->capacity() > kBytesUnweighed) array_->release();
  }
  out_ = nullptr;
}

}  // namespace wirecall::rpc

#include "rpc/reply.hpp"

#include "message/own_error.hpp"
#include "wirecall/message.hpp"

namespace wirecall::rpc {

void Reply::error(int code, std::string_view message, std::string_view data_json, std::string_view id_json) {
  open();
  write_error(*out_, code, message, data_json, id_json);
  if (out_->size() - start_ > bytes_max_ && (!data_json.empty() || message.size() > 64)) [[unlikely]] {
    discard();
    open();
    write_error(*out_, static_cast<int>(ErrorCode::too_large), message_of(ErrorCode::too_large), {}, id_json);
  }
  close();
}

void Reply::discard() noexcept {
  if (out_ == nullptr) return;
  if (outlet_ != nullptr) {
    outlet_->discard_message();
  } else {
    array_->truncate(start_);
  }
  out_ = nullptr;
}

}  // namespace wirecall::rpc

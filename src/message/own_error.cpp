#include "message/own_error.hpp"

#include <new>

#include "wirecall/message.hpp"
#include "wirecall/value.hpp"

namespace wirecall::message {

static Error with_data(const OwnError& error) {
  std::string data = R"({"reason":")";
  data += error.reason;
  data += R"(","origin":")";
  data += error.origin;
  data += R"(","delivered":")";
  data += error.delivered;
  if (!error.limit.empty()) {
    data += R"(","limit":")";
    data += error.limit;
  }
  data += '"';
  if (error.retry_after_ms != 0) data += R"(,"retry_after_ms":)" + std::to_string(error.retry_after_ms);
  data += '}';
  return Error::with_data(error.code, std::move(data));
}

Error make(const OwnError& error) {
  try {
    return with_data(error);
  } catch (const std::bad_alloc&) {
    return Error{error.code};  // whose message is short enough to need no memory
  }
}

static Error replaced(const Error& error, std::string_view with) {
  if (error.data().find("delivered") == std::string::npos) return error;
  auto said = Value::parse(error.data());
  Value* const delivered = said && said->is_object() ? said->find("delivered") : nullptr;
  if (delivered == nullptr || *delivered == Value{with}) return error;
  if (*delivered != Value{"no"} && *delivered != Value{"maybe"}) return error;  // it is not wirecall's
  *delivered = with;
  return {error.code(), error.message(), said->dump()};
}

Error with_delivered(const Error& error, std::string_view delivered) {
  try {
    return replaced(error, delivered);
  } catch (const std::bad_alloc&) {
    return Error{static_cast<ErrorCode>(error.code())};
  }
}

}  // namespace wirecall::message

namespace wirecall {

Error detail::as_answer(const Error& error) { return message::with_delivered(error, "maybe"); }

}  // namespace wirecall

#include "message/own_error.hpp"

#include <new>
#include <string>

namespace wirecall::message {

namespace {

Error with_data(const OwnError& error) {
  std::string data = R"({"reason":")";
  data += error.reason;
  data += R"(","origin":"local","delivered":")";
  data += error.delivered;
  if (!error.limit.empty()) {
    data += R"(","limit":")";
    data += error.limit;
  }
  data += "\"}";
  return {error.code, std::string{message_of(error.code)}, std::move(data)};
}

}  // namespace

Error make(const OwnError& error) {
  try {
    return with_data(error);
  } catch (const std::bad_alloc&) {
    return Error{error.code};  // whose message is short enough to need no memory
  }
}

}  // namespace wirecall::message

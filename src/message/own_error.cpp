#include "message/own_error.hpp"

#include <string>

namespace wirecall::message {

Error make(const OwnError& error) {
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

}  // namespace wirecall::message

// An error object as JSON text, where it is no response of its own. Pure.
#pragma once

#include "wirecall/error.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::message {

[[nodiscard]] inline std::string error_text(const Error& error) {
  std::string text = R"({"code":)" + std::to_string(error.code()) + R"(,"message":)" + to_json(error.message());
  if (!error.data().empty()) text.append(R"(,"data":)").append(error.data());
  return text += '}';
}

}  // namespace wirecall::message

// The messages of the error catalogue (include/wirecall/error.hpp). The first five are JSON-RPC 2.0's own words.
#include "wirecall/error.hpp"

namespace wirecall {

std::string_view message_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::parse_error: return "Parse error";
    case ErrorCode::invalid_request: return "Invalid Request";
    case ErrorCode::method_not_found: return "Method not found";
    case ErrorCode::invalid_params: return "Invalid params";
    case ErrorCode::internal_error: return "Internal error";
    case ErrorCode::server_error: return "Server error";
    case ErrorCode::provider_lost: return "Provider lost";
    case ErrorCode::timeout: return "Timeout";
    case ErrorCode::forbidden: return "Forbidden";
    case ErrorCode::unauthenticated: return "Unauthenticated";
    case ErrorCode::limit_exceeded: return "Limit exceeded";
    case ErrorCode::too_large: return "Too large";
    case ErrorCode::conflict: return "Conflict";
    case ErrorCode::no_subscription: return "No such subscription";
    case ErrorCode::draining: return "Draining";
    case ErrorCode::cancelled: return "Cancelled";
  }
  return {};
}

}  // namespace wirecall

// See durable_answers.hpp.
#include "broker/durable_answers.hpp"

#include "message/own_error.hpp"

namespace wirecall::broker {

using durable::Failure;

static Error with_reason(ErrorCode code, std::string_view reason) {
  return Error::with_data(code, R"({"reason":)" + to_json(reason) + "}");
}

Error error_of(const Failure& failure) {
  switch (failure.kind) {
    case Failure::Kind::full: return limit_exceeded(failure.why, failure.limit);
    case Failure::Kind::conflict: return conflict(failure.why);
    case Failure::Kind::unknown: return with_reason(ErrorCode::invalid_params, failure.why);
    case Failure::Kind::refused: return with_reason(ErrorCode::invalid_request, failure.why);
    case Failure::Kind::moved: return message::make(ErrorCode::draining, failure.why, "no");
    case Failure::Kind::broken: break;
  }
  return with_reason(ErrorCode::internal_error, "the durable store fails: " + failure.why);
}

Error needs_store() {
  return Error::with_data(
      ErrorCode::invalid_request,
      R"({"reason":"needs_durable","cure":"start the broker with a durable store: wirecall serve --durable FOLDER"})");
}

std::string json_of(Reader& reader, std::string_view name, const rpc::RawValue& value) {
  if (reader.is_json()) return std::string{value.text};
  reader.reset(value.text);
  std::string_view json;
  if (!reader.read_json(json)) {
    reader.clear_failure();
    rpc::refuse_unshown(name, "values that JSON can hold");
  }
  return std::string{json};
}

struct ErrorCodeRead {
  int code = 0;
};

std::string kept_error(std::string error_json, std::string_view whose) {
  constexpr std::size_t kBytesMax = std::size_t{16} << 10U;
  if (error_json.size() <= kBytesMax) return error_json;
  const auto read = from_json<ErrorCodeRead>(error_json);
  const int code = read ? read->code : static_cast<int>(ErrorCode::internal_error);
  return R"({"code":)" + std::to_string(code) + R"(,"message":")" + std::string{whose} +
         R"( error is too large to be kept"})";
}

}  // namespace wirecall::broker

#include "message/read_error.hpp"

#include "message/own_error.hpp"

namespace wirecall::message {

Error malformed_response() { return make(ErrorCode::invalid_request, "the response is malformed", "maybe"); }

bool is_error(Reader& reader, std::string_view text) {
  using Integers = std::numeric_limits<std::int64_t>;
  std::int64_t code = 0;
  bool coded = false;
  std::string_view name;
  std::string_view words;
  reader.reset(text);
  bool well_formed = reader.begin_object();
  while (well_formed && reader.next_member(name)) {
    if (name == "code") {
      coded = well_formed = reader.read_int(Integers::min(), Integers::max(), code);
    } else if (name == "message") {
      well_formed = reader.read_string(words);
    } else {
      reader.skip();
    }
  }
  reader.clear_failure();
  return well_formed && coded;
}

Error read_error(Reader& reader, std::string_view text) {
  std::int64_t code = 0;
  std::string message;
  std::string data;
  bool coded = false;
  std::string_view name;
  std::string_view words;
  reader.reset(text);
  bool well_formed = reader.begin_object();
  while (well_formed && reader.next_member(name)) {
    if (name == "code") {
      coded = well_formed = reader.read_int(std::numeric_limits<int>::min(), std::numeric_limits<int>::max(), code);
    } else if (name == "message") {
      well_formed = reader.read_string(words);
      message = words;
    } else if (name == "data") {
      data = reader.skip();
    } else {
      reader.skip();
    }
  }
  reader.clear_failure();
  if (!well_formed || !coded) return malformed_response();
  return {static_cast<int>(code), std::move(message), std::move(data)};
}

}  // namespace wirecall::message

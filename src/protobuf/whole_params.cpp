// See whole_params.hpp.
#include "protobuf/whole_params.hpp"

#include "wirecall/protobuf/channel.hpp"
#include "wirecall/protobuf/message_json.hpp"

namespace wirecall::protobuf {

// Params are none: an empty message, if it may be one.
static bool read_none(Reader& reader, Message& out) {
  out.Clear();
  if (is_object_form(*out.GetDescriptor()) && out.IsInitialized()) return true;
  return reader.fail_missing(out.GetDescriptor()->full_name());
}

static bool refuse_more(Reader& reader, const auto& step) {
  reader.fail("nothing");
  return reader.failed_at(step);
}

bool read_params(std::string_view params, Reader& reader, Message& out) {
  if (reader.failed()) reader.clear_failure();
  static_cast<void>(reader.take_own_form());
  if (params.empty()) return read_none(reader, out);
  reader.reset(params);
  if (reader.kind() == ValueKind::array) {
    static_cast<void>(reader.begin_array());
    if (!reader.next_element()) return read_none(reader, out);
    if (!read(reader, out)) return reader.failed_at(std::size_t{0});
    return !reader.next_element() || refuse_more(reader, std::size_t{1});
  }
  if (reader.kind() != ValueKind::object) return read_none(reader, out);
  if (is_object_form(*out.GetDescriptor())) return read(reader, out);
  static_cast<void>(reader.begin_object());
  std::string_view name;
  if (!reader.next_member(name)) return read_none(reader, out);
  if (name != kWholeValue) return refuse_more(reader, name);
  if (!read(reader, out)) return reader.failed_at(kWholeValue);
  return !reader.next_member(name) || refuse_more(reader, name);
}

void detail::write_params(Writer& writer, const google::protobuf::Message& request, bool as_bytes) {
  if (!as_bytes && is_object_form(*request.GetDescriptor())) return write(writer, request);
  writer.begin_array(1);
  as_bytes ? write_bytes(writer, request) : write(writer, request);
  writer.end_array();
}

}  // namespace wirecall::protobuf

// Whether bytes that we send are of the encoding that they are sent in, for fuzzers of connections. Pure.
#pragma once

#include <string_view>

#include "codec/json_scan.hpp"
#include "fuzz/simdjson_opinion.hpp"
#include "fuzz/texts.hpp"
#include "message/message_codec.hpp"
#include "message/protobuf_fields.hpp"
#include "wirecall/limits.hpp"

namespace fuzz {

/// One whole message, or value.
inline bool is_whole_in(wirecall::Encoding encoding, std::string_view bytes) {
  if (encoding == wirecall::Encoding::protobuf) return wirecall::message::is_protobuf(bytes);
  const PaddedText padded{bytes};
  if (encoding == wirecall::Encoding::json)
    return is_whole(padded.view(), wirecall::json::scan(padded.view(), wirecall::kDepthMax));
  const wirecall::Scan scan = wirecall::message::codec_of(encoding).values().scan(padded.view(), wirecall::kDepthMax);
  return scan.status == wirecall::ScanStatus::complete && scan.offset == bytes.size();
}

}  // namespace fuzz

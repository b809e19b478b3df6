// See binary_transcoder.hpp: the two transcoders, of the two halves that both share.
#include "message/binary_transcoder.hpp"

#include "message/binary_from_json.hpp"
#include "message/binary_to_json.hpp"

namespace wirecall::message {

template class BinaryTranscoder<MsgpackMessages>;
template class BinaryTranscoder<CborMessages>;

}  // namespace wirecall::message

// What a request to the broker is about, for the log: the topic, method, pattern or client that its params name. Of
// params of reserved methods only: those of others may be secrets. Pure.
#pragma once

#include "wirecall/message.hpp"

namespace wirecall::rpc {

/// `params` are valid or empty. The first member of those names that is there counts, or the
/// first position; of `methods`, the first of them. Empty where there is none, or the params have over 4 KiB.
[[nodiscard]] std::string subject_of(EncodedText params);

}  // namespace wirecall::rpc

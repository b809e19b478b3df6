// UnidentifiedPeers: what connections hold whose peers have not said who they are, where that is asked. All together
// they are bounded; beyond that the one that holds most is closed, so that newcomers find room. Each has a place in a
// list, which it takes and leaves by itself. One thread (the loop's). Pure.
#pragma once

#include <cstddef>

namespace wirecall::rpc {

/// Bytes of a message that a peer may send before it has said who it is, and of answers that it may leave unread.
inline constexpr std::size_t kUnidentifiedBytesMax = 64 * 1024;

class UnidentifiedPeers;

class UnidentifiedPeer {
 public:
  explicit UnidentifiedPeer(UnidentifiedPeers& all) noexcept;
  UnidentifiedPeer(UnidentifiedPeer&&) = delete;

 protected:
  ~UnidentifiedPeer();

 private:
  friend class UnidentifiedPeers;
  /// Its connection is to be closed, and what it holds be given back.
  virtual void give_way() = 0;

  UnidentifiedPeers* all_;
  UnidentifiedPeer* before_ = nullptr;
  UnidentifiedPeer* after_ = nullptr;
  std::size_t bytes_ = 0;
};

class UnidentifiedPeers {
 public:
  /// `peer` holds so many bytes now. While all together hold more than `bytes_max`, the one that holds most gives way.
  void hold(UnidentifiedPeer& peer, std::size_t bytes, std::size_t bytes_max) {
    set(peer, bytes);
    while (bytes_ > bytes_max) {
      UnidentifiedPeer* heaviest = first_;
      for (UnidentifiedPeer* one = first_; one != nullptr; one = one->after_) {
        if (one->bytes_ > heaviest->bytes_) heaviest = one;
      }
      set(*heaviest, 0);
      heaviest->give_way();
    }
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  friend class UnidentifiedPeer;
  void set(UnidentifiedPeer& peer, std::size_t bytes) noexcept {
    bytes_ += bytes - peer.bytes_;
    peer.bytes_ = bytes;
  }

  UnidentifiedPeer* first_ = nullptr;
  std::size_t bytes_ = 0;
};

inline UnidentifiedPeer::UnidentifiedPeer(UnidentifiedPeers& all) noexcept : all_(&all), after_(all.first_) {
  if (after_ != nullptr) after_->before_ = this;
  all.first_ = this;
}

inline UnidentifiedPeer::~UnidentifiedPeer() {
  all_->set(*this, 0);
  (before_ != nullptr ? before_->after_ : all_->first_) = after_;
  if (after_ != nullptr) after_->before_ = before_;
}

}  // namespace wirecall::rpc

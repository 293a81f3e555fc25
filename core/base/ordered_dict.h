// OrderedDict: a map that remembers the order of insertion, with LibTorch's accessors.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "taper/core/base/error.h"

namespace taper {

template <class Key, class Value> class OrderedDict {
 public:
  class Item {
   public:
    Item(Key key, Value value) : pair_(std::move(key), std::move(value)) {}

    const Key& key() const { return pair_.first; }

    Value& value() { return pair_.second; }

    const Value& value() const { return pair_.second; }

    Value& operator*() { return pair_.second; }

    Value* operator->() { return &pair_.second; }

    const Value* operator->() const { return &pair_.second; }

    const std::pair<Key, Value>& pair() const { return pair_; }

   private:
    std::pair<Key, Value> pair_;
  };

  std::size_t size() const { return items_.size(); }

  bool is_empty() const { return items_.empty(); }

  bool contains(const Key& key) const { return find(key) != nullptr; }

  Value* find(const Key& key) {
    for (Item& item : items_) {
      if (item.key() == key) return &item.value();
    }
    return nullptr;
  }

  const Value* find(const Key& key) const {
    for (const Item& item : items_) {
      if (item.key() == key) return &item.value();
    }
    return nullptr;
  }

  Value& operator[](const Key& key) {
    Value* found = find(key);
    TAPER_CHECK(found != nullptr, "there is no '", key, "' here");
    return *found;
  }

  const Value& operator[](const Key& key) const {
    const Value* found = find(key);
    TAPER_CHECK(found != nullptr, "there is no '", key, "' here");
    return *found;
  }

  Value& insert(Key key, Value value) {
    TAPER_CHECK(!contains(key), "'", key, "' is there already");
    items_.emplace_back(std::move(key), std::move(value));
    return items_.back().value();
  }

  std::vector<Key> keys() const {
    std::vector<Key> out;
    for (const Item& item : items_) out.push_back(item.key());
    return out;
  }

  std::vector<Value> values() const {
    std::vector<Value> out;
    for (const Item& item : items_) out.push_back(item.value());
    return out;
  }

  const std::vector<Item>& items() const { return items_; }

  auto begin() { return items_.begin(); }

  auto end() { return items_.end(); }

  auto begin() const { return items_.begin(); }

  auto end() const { return items_.end(); }

 private:
  std::vector<Item> items_;
};

}  // namespace taper

// save and load: tensors, modules and optimizers in safetensors files.
#pragma once
#include <string>
#include <vector>

#include "taper/data/safetensors.h"

namespace taper {

namespace data {

template <class T>
concept HasState = requires(const T& x) {
  {x.state_dict()};
};

template <class T>
concept PointsToState = requires(const T& x) {
  {x->state_dict()};
};

// What does not fit is said with the name of the file.
template <class T> void load_state(T& x, const std::string& path) {
  const SafeTensors read = read_safetensors(path);
  try {
    x.load_state_dict(read.tensors);
  } catch (const Error& e) {
    throw Error(path + ": " + e.message(), e.op(), e.loc(), e.scope());
  }
}

}  // namespace data

// One tensor, under the name "tensor"; several, under "0", "1", ...; named ones as they are.
void save(const Tensor& tensor, const std::string& path, Loc loc = Loc::current());
void save(const std::vector<Tensor>& tensors, const std::string& path, Loc loc = Loc::current());
void save(const OrderedDict<std::string, Tensor>& tensors,
          const std::string& path,
          Loc loc = Loc::current());
void load(Tensor& tensor, const std::string& path, Loc loc = Loc::current());
void load(std::vector<Tensor>& tensors, const std::string& path, Loc loc = Loc::current());
void load(OrderedDict<std::string, Tensor>& tensors,
          const std::string& path,
          Loc loc = Loc::current());

// A module (by holder or shared_ptr) or an optimizer: its state_dict().
template <data::HasState T>
void save(const T& x, const std::string& path, Loc loc = Loc::current()) {
  save(x.state_dict(), path, loc);
}

template <data::PointsToState T>
void save(const T& x, const std::string& path, Loc loc = Loc::current()) {
  save(x->state_dict(), path, loc);
}

// Copies the values into the parameters that are there; see Module::load_state_dict.
template <data::HasState T> void load(T& x, const std::string& path, Loc loc = Loc::current()) {
  const Call call(loc);
  data::load_state(x, path);
}

template <data::PointsToState T>
void load(T& x, const std::string& path, Loc loc = Loc::current()) {
  const Call call(loc);
  data::load_state(*x, path);
}

}  // namespace taper

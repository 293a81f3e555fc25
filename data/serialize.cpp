// save and load of tensors.
#include "taper/data/serialize.h"

#include "taper/autograd/grad_mode.h"

namespace taper {

void save(const OrderedDict<std::string, Tensor>& tensors, const std::string& path, Loc loc) {
  data::write_safetensors(tensors, path, {}, loc);
}

void save(const Tensor& tensor, const std::string& path, Loc loc) {
  OrderedDict<std::string, Tensor> named;
  named.insert("tensor", tensor);
  save(named, path, loc);
}

void save(const std::vector<Tensor>& tensors, const std::string& path, Loc loc) {
  OrderedDict<std::string, Tensor> named;
  for (std::size_t i = 0; i < tensors.size(); ++i) named.insert(std::to_string(i), tensors[i]);
  save(named, path, loc);
}

void load(OrderedDict<std::string, Tensor>& tensors, const std::string& path, Loc loc) {
  tensors = data::read_safetensors(path, loc).tensors;
}

void load(Tensor& tensor, const std::string& path, Loc loc) {
  const Call call(loc);
  const auto named = data::read_safetensors(path).tensors;
  const Tensor* found = named.find("tensor");
  TAPER_CHECK(found != nullptr, "load: ", path, " holds ", named.size(),
              " named tensors, not one; load it into an OrderedDict");
  tensor = *found;
}

void load(std::vector<Tensor>& tensors, const std::string& path, Loc loc) {
  const Call call(loc);
  const auto named = data::read_safetensors(path).tensors;
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < named.size(); ++i) {
    const Tensor* found = named.find(std::to_string(i));
    TAPER_CHECK(found != nullptr, "load: ", path, " holds no tensor '", i,
                "'; load it into an OrderedDict");
    out.push_back(*found);
  }
  tensors = std::move(out);
}

}  // namespace taper

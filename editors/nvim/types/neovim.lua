---@meta
--- What the annotations of Neovim itself leave out. Read by the type checker only.

---@class IterMod
---@overload fun(source: any, ...: any): Iter

---@meta
--- Types that the annotations of Neovim lack. Read by the type checker only.

---@class IterMod
---@overload fun(source: any, ...: any): Iter

//! Modules and their kernels, which are loaded when they are first launched.

use std::ffi::{CString, c_void};

use cudarc::driver::{result, sys};

use super::{Cuda, refused};
use crate::error::Error;
use crate::kernel::{Kernel, Module};

impl Cuda {
    fn load(&self, module: &Module) -> Result<sys::CUmodule, Error> {
        if let Some(&loaded) = self.modules.borrow().get(&module.identity()) {
            return Ok(loaded);
        }
        let refuse = |why: String| Error::Module { module: module.name().to_owned(), why };
        let text = CString::new(module.ptx()).map_err(|_| refuse("its text has a zero byte".to_owned()))?;
        let mut log = vec![0u8; 8192];
        let mut options = [
            sys::CUjit_option_enum::CU_JIT_ERROR_LOG_BUFFER,
            sys::CUjit_option_enum::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        let mut values = [log.as_mut_ptr().cast::<c_void>(), std::ptr::without_provenance_mut(log.len())];
        let mut loaded = std::ptr::null_mut();
        // SAFETY: the text ends in zero; options and values are as many as said; the log has the
        // size that is told, and outlives the call.
        let outcome = unsafe {
            sys::cuModuleLoadDataEx(&mut loaded, text.as_ptr().cast(), 2, options.as_mut_ptr(), values.as_mut_ptr())
                .result()
        };
        if let Err(error) = outcome {
            let said = log.split(|&byte| byte == 0).next().unwrap_or_default();
            return Err(refuse(format!("{error:?}: {}", String::from_utf8_lossy(said).trim())));
        }
        self.modules.borrow_mut().insert(module.identity(), loaded);
        Ok(loaded)
    }

    pub(super) fn function(&self, kernel: Kernel<'_>) -> Result<sys::CUfunction, Error> {
        let key = (kernel.module.identity(), kernel.entry);
        if let Some(&function) = self.functions.borrow().get(&key) {
            return Ok(function);
        }
        let module = self.load(kernel.module)?;
        let name =
            CString::new(kernel.entry).map_err(|_| Error::Invalid("a kernel's name has a zero byte".to_owned()))?;
        // SAFETY: the module was loaded and stays so.
        let function = unsafe { result::module::get_function(module, name) };
        let function = function.map_err(refused(format!("find the kernel {}", kernel.entry)))?;
        self.functions.borrow_mut().insert(key, function);
        Ok(function)
    }
}

//! The exports of a Worker, in a form that other hosts type-check, so that one file serves both.

/// Names the classes of a Worker and its entry.
///
/// - `export!(Name = Type<_>)` exports a class `Name` for `wrangler.toml` to bind. `_` stands for the state of this
///   host, so the type can be generic. Several may stand in one call, with commas between.
/// - `export!(fetch = route)` makes `route`, a function of the request and the environment, what answers requests
///   from outside. An error becomes the response of [`reply::error`](crate::reply::error).
///
/// Needs the feature `workers`, and a library of the crate types `cdylib` and `rlib`. On native targets it only checks
/// the types, and without the feature of a host not even those.
///
/// ```
/// use do_core::prelude::*;
///
/// struct Hello;
///
/// impl<S: ObjectState> DurableObject<S> for Hello {
///     fn new(_: S) -> Result<Self> {
///         Ok(Self)
///     }
///     async fn fetch(&self, _: Request) -> Result<Response> {
///         Ok(reply::text("hello"))
///     }
/// }
///
/// async fn route<E: Env>(request: Request, env: E) -> Result<Response> {
///     Ok(env.namespace("HELLO")?.named("world")?.fetch(request).await?)
/// }
///
/// do_core::export!(HelloObject = Hello);
/// do_core::export!(fetch = route);
/// ```
#[macro_export]
macro_rules! export {
    (fetch = $route:expr $(,)?) => {
        $crate::__export_fetch!($route);
    };
    ($($class:ident = $($object:ident)::+ $(<$($argument:tt),+>)?),+ $(,)?) => { $(
        const _: () = {
            // Outside of the block with the class, whose name may be that of the object's type.
            #[allow(dead_code)]
            type Exported = $($object)::+ $(<$($crate::__export_argument!($argument)),+>)?;
            $crate::__export_class!($class);
        };
    )+ };
}

#[doc(hidden)]
#[cfg(any(
    all(feature = "workers", target_arch = "wasm32"),
    all(feature = "tokio", not(target_arch = "wasm32"))
))]
#[macro_export]
macro_rules! __export_argument {
    (_) => {
        $crate::State
    };
    ($type:ty) => {
        $type
    };
}

#[cfg(all(feature = "workers", target_arch = "wasm32"))]
mod host {
    #[doc(hidden)]
    #[macro_export]
    macro_rules! __export_fetch {
        ($route:expr) => {
            #[allow(
                unreachable_pub,
                missing_debug_implementations,
                missing_docs,
                unused_imports,
                clippy::all
            )]
            const _: () = {
                use $crate::workers::rt::{
                    js_sys, wasm_bindgen, wasm_bindgen::prelude::*, wasm_bindgen_futures, web_sys,
                };

                #[wasm_bindgen(wasm_bindgen = wasm_bindgen)]
                pub fn fetch(request: web_sys::Request, env: JsValue, _context: JsValue) -> js_sys::Promise {
                    $crate::workers::rt::entry($route, request, env)
                }
            };
        };
    }

    #[doc(hidden)]
    #[macro_export]
    macro_rules! __export_class {
        ($class:ident) => {
            #[allow(
                unreachable_pub,
                missing_debug_implementations,
                missing_docs,
                unused_imports,
                clippy::all
            )]
            const _: () = {
                use $crate::workers::rt::{
                    js_sys, wasm_bindgen, wasm_bindgen::prelude::*, wasm_bindgen_futures, web_sys,
                };

                #[wasm_bindgen(wasm_bindgen = wasm_bindgen)]
                pub struct $class($crate::workers::rt::Object<Exported>);

                // What a panic leaves behind is given up: the object is reset.
                impl ::core::panic::UnwindSafe for $class {}
                impl ::core::panic::RefUnwindSafe for $class {}

                #[wasm_bindgen]
                impl $class {
                    #[wasm_bindgen(constructor)]
                    pub fn new(context: JsValue, env: JsValue) -> Result<$class, JsValue> {
                        Ok(Self($crate::workers::rt::Object::new(context, env)?))
                    }

                    pub fn fetch(&self, request: web_sys::Request) -> js_sys::Promise {
                        self.0.fetch(request)
                    }

                    pub fn alarm(&self, info: JsValue) -> js_sys::Promise {
                        self.0.alarm(&info)
                    }

                    #[wasm_bindgen(js_name = webSocketMessage)]
                    pub fn websocket_message(
                        &self,
                        socket: web_sys::WebSocket,
                        message: JsValue,
                    ) -> js_sys::Promise {
                        self.0.websocket_message(socket, &message)
                    }

                    #[wasm_bindgen(js_name = webSocketClose)]
                    pub fn websocket_close(
                        &self,
                        socket: web_sys::WebSocket,
                        code: JsValue,
                        reason: JsValue,
                        was_clean: JsValue,
                    ) -> js_sys::Promise {
                        self.0.websocket_close(socket, &code, &reason, &was_clean)
                    }

                    #[wasm_bindgen(js_name = webSocketError)]
                    pub fn websocket_error(
                        &self,
                        socket: web_sys::WebSocket,
                        error: JsValue,
                    ) -> js_sys::Promise {
                        self.0.websocket_error(socket, &error)
                    }
                }
            };
        };
    }
}

#[cfg(all(feature = "tokio", not(target_arch = "wasm32")))]
mod host {
    #[doc(hidden)]
    #[macro_export]
    macro_rules! __export_fetch {
        ($route:expr) => {
            const _: () = {
                fn checked<F, R>(_: F)
                where
                    F: FnOnce($crate::Request, $crate::EnvOf<$crate::State>) -> R,
                    R: ::core::future::Future<
                            Output = ::core::result::Result<$crate::Response, $crate::Failure>,
                        >,
                {
                }
                let _ = || checked($route);
            };
        };
    }

    #[doc(hidden)]
    #[macro_export]
    macro_rules! __export_class {
        ($class:ident) => {
            const _: () = {
                const fn checked<O: $crate::DurableObject<$crate::State>>() {}
                checked::<Exported>();
            };
        };
    }
}

/// Without a host there is no state to check against.
#[cfg(not(any(target_arch = "wasm32", feature = "tokio")))]
mod host {
    #[doc(hidden)]
    #[macro_export]
    macro_rules! __export_fetch {
        ($route:expr) => {};
    }

    #[doc(hidden)]
    #[macro_export]
    macro_rules! __export_class {
        ($class:ident) => {};
    }
}

/// A Worker without its exports would build without a word, and serve nothing.
#[cfg(all(target_arch = "wasm32", not(feature = "workers")))]
mod host {
    #[doc(hidden)]
    #[macro_export]
    macro_rules! __export_fetch {
        ($route:expr) => {
            compile_error!("`do_core::export!` needs the feature `workers` of do-core on this target");
        };
    }

    #[doc(hidden)]
    #[macro_export]
    macro_rules! __export_class {
        ($class:ident) => {
            compile_error!("`do_core::export!` needs the feature `workers` of do-core on this target");
        };
    }
}

#[doc(hidden)]
#[cfg(not(any(
    all(feature = "workers", target_arch = "wasm32"),
    all(feature = "tokio", not(target_arch = "wasm32"))
)))]
#[macro_export]
macro_rules! __export_argument {
    (_) => {
        ()
    };
    ($type:ty) => {
        $type
    };
}

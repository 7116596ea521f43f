"""The provider protocol: Pulumi's engine on one side, the resource types on the other."""

import threading
import traceback
from collections.abc import Callable
from functools import wraps
from typing import Any

import grpc
from google.protobuf import any_pb2, empty_pb2
from pulumi.runtime.proto import (
    engine_pb2,
    engine_pb2_grpc,
    plugin_pb2,
    provider_pb2,
    status_pb2,
)
from pulumi.runtime.proto import provider_pb2_grpc as rpc

from engine.sandbox.aws.config import ConfigError, config_failures, read_config
from engine.sandbox.aws.performed import PERFORMED
from engine.sandbox.aws.resource import CallError, PartialError, Resource
from engine.sandbox.aws.schema import Failure
from engine.sandbox.aws.session import Region, Session
from engine.sandbox.aws.waiting import Pace
from engine.sandbox.aws.wire import Properties, decode, encode

# The plugin whose resource types are stood in for; pulumi_aws asks for this version.
STANDS_IN_FOR = "7.51.1"

ENGINES_REMEMBERED = 1024

ANNOUNCEMENT = "nodewright's stand-in for pulumi-resource-aws performs this stack on {endpoints}"


def _without_traceback(method: Callable[..., Any]) -> Callable[..., Any]:
    """Turn what goes wrong into gRPC errors as the official plugin sends them."""

    @wraps(method)
    def answered(self: "StandInProvider", request: Any, context: Any) -> Any:
        try:
            return method(self, request, context)
        except PartialError as error:
            self.abort_partially(context, error, str(error))
        except CallError as error:
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        except UnsupportedError as error:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, str(error))
        except grpc.RpcError:
            raise
        except Exception as error:
            if context.code() is not None:
                raise  # an abort of ours on its way out
            text = "".join(traceback.format_exception(error))
            context.abort(grpc.StatusCode.INTERNAL, f"nodewright's stand-in for the AWS plugin has a defect:\n{text}")

    return answered


class UnsupportedError(Exception):
    """Something that only the official plugin performs."""


class StandInProvider(rpc.ResourceProviderServicer):
    """Serves engines: one that started it, or any number that attach to it, one after another or at once.

    Every engine has a connection of its own, and that is what a configuration belongs to.
    """

    def __init__(self, scale: float) -> None:
        self._scale = scale
        self._lock = threading.Lock()
        self._sessions: dict[str, Session] = {}
        self._engines: dict[str, str] = {}

    # The plugin itself

    def Handshake(self, request: Any, context: Any) -> Any:
        self._engines[context.peer()] = request.engine_address
        # Secrets and outputs are taken off by the engine, which puts the secrecy back on what we answer.
        return provider_pb2.ProviderHandshakeResponse()

    def Attach(self, request: Any, context: Any) -> Any:
        self._engines[context.peer()] = request.address
        return empty_pb2.Empty()

    def GetPluginInfo(self, request: Any, context: Any) -> Any:
        return plugin_pb2.PluginInfo(version=f"{STANDS_IN_FOR}+nodewright.stand-in")

    def Cancel(self, request: Any, context: Any) -> Any:
        session = self._sessions.get(context.peer())
        if session is not None:
            session.pace.stopped.set()
        return empty_pb2.Empty()

    def GetSchema(self, request: Any, context: Any) -> Any:
        context.abort(grpc.StatusCode.UNIMPLEMENTED, "nodewright's stand-in for the AWS plugin carries no schema")

    @_without_traceback
    def Invoke(self, request: Any, context: Any) -> Any:
        raise UnsupportedError(
            f"{request.tok}: nodewright's stand-in for the AWS plugin performs resources only, no functions; "
            "give literal ids, or install the official plugin"
        )

    # Configuration

    def CheckConfig(self, request: Any, context: Any) -> Any:
        inputs = decode(request.news)
        return _check_response(request.news, config_failures(inputs))

    def DiffConfig(self, request: Any, context: Any) -> Any:
        old, new = decode(request.old_inputs or request.olds), decode(request.news)
        changed = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
        kind = provider_pb2.DiffResponse.DIFF_SOME if changed else provider_pb2.DiffResponse.DIFF_NONE
        return provider_pb2.DiffResponse(changes=kind, diffs=changed)

    @_without_traceback
    def Configure(self, request: Any, context: Any) -> Any:
        try:
            config = read_config(decode(request.args))
        except ConfigError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        with self._lock:
            like = next((one for one in self._sessions.values() if one.config == config), None)
            self._sessions[context.peer()] = Session(config, Pace(self._scale), like)
            self._forget_the_oldest()
        _announce(self._engines.get(context.peer(), ""), sorted(set(config.endpoints.values())))
        return provider_pb2.ConfigureResponse(supportsPreview=True)

    # Resources

    @_without_traceback
    def Check(self, request: Any, context: Any) -> Any:
        resource = self._resource(request)
        inputs, failures = resource.check(
            self._configured(context).config,
            request.name or _name(request.urn),
            bytes(request.randomSeed),
            decode(request.olds),
            decode(request.news),
        )
        return _check_response(encode(inputs), failures)

    @_without_traceback
    def Diff(self, request: Any, context: Any) -> Any:
        resource = self._resource(request)
        old, state, new = decode(request.old_inputs), decode(request.olds), decode(request.news)
        for name in request.ignoreChanges:
            new.pop(name, None)
            if name in old:
                new[name] = old[name]
        aws = self._region(context, new)
        difference = resource.diff(aws, request.id, old, state, new)
        kinds = provider_pb2.DiffResponse
        return provider_pb2.DiffResponse(
            changes=kinds.DIFF_SOME if difference.changed else kinds.DIFF_NONE,
            diffs=sorted(difference.changed),
            replaces=sorted(difference.replacing),
            deleteBeforeReplace=resource.deletes_before_replacing and bool(difference.replacing),
        )

    @_without_traceback
    def Create(self, request: Any, context: Any) -> Any:
        resource = self._resource(request)
        inputs = decode(request.properties)
        aws = self._region(context, inputs)
        if request.preview:
            return provider_pb2.CreateResponse(properties=encode(resource.planned(aws, inputs)))
        try:
            identity, outputs = resource.create(aws, inputs, request.timeout)
        except PartialError as error:
            return self.abort_partially(context, error, _told("creating", resource, error.identity, error))
        except CallError as error:
            return context.abort(grpc.StatusCode.UNKNOWN, _told("creating", resource, "", error))
        return provider_pb2.CreateResponse(id=identity, properties=encode(outputs))

    @_without_traceback
    def Read(self, request: Any, context: Any) -> Any:
        resource = self._resource(request)
        inputs, state = decode(request.inputs), decode(request.properties)
        known = {**inputs, **state}
        aws = self._region(context, known)
        identity = str(state.get("id") or request.id)
        try:
            outputs = resource.read(aws, identity, known)
        except CallError as error:
            return context.abort(grpc.StatusCode.UNKNOWN, _told("reading", resource, identity, error))
        if outputs is None:
            return provider_pb2.ReadResponse()
        fresh = resource.refreshed_inputs(inputs, outputs) if inputs else resource.imported_inputs(outputs)
        return provider_pb2.ReadResponse(id=request.id, properties=encode(outputs), inputs=encode(fresh))

    @_without_traceback
    def Update(self, request: Any, context: Any) -> Any:
        resource = self._resource(request)
        old, state, new = decode(request.old_inputs), decode(request.olds), decode(request.news)
        aws = self._region(context, new)
        identity = str(state.get("id") or request.id)
        if request.preview:
            changed = resource.diff(aws, identity, old, state, new).changed
            planned = resource.planned_update(aws, state, new, changed)
            return provider_pb2.UpdateResponse(properties=encode(planned))
        try:
            outputs = resource.update(aws, identity, old, state, new, request.timeout)
        except PartialError as error:
            return self.abort_partially(context, error, _told("updating", resource, identity, error), old)
        return provider_pb2.UpdateResponse(properties=encode(outputs))

    @_without_traceback
    def Delete(self, request: Any, context: Any) -> Any:
        resource = self._resource(request)
        known = {**decode(request.old_inputs), **decode(request.properties)}
        identity = str(known.get("id") or request.id)
        try:
            resource.remove(self._region(context, known), identity, known, request.timeout or resource.delete_seconds)
        except CallError as error:
            context.abort(grpc.StatusCode.UNKNOWN, _told("deleting", resource, identity, error))
        return empty_pb2.Empty()

    def abort_partially(self, context: Any, error: PartialError, reason: str, inputs: Properties | None = None) -> Any:
        """Fail, and let the engine keep the id: what exists must not be forgotten."""
        details = any_pb2.Any()
        details.Pack(
            provider_pb2.ErrorResourceInitFailed(
                id=error.identity,
                properties=encode(error.outputs),
                reasons=[reason],
                inputs=encode(inputs) if inputs is not None else None,
            )
        )
        code = grpc.StatusCode.UNKNOWN
        status = status_pb2.Status(code=code.value[0], message=reason, details=[details])
        context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
        context.abort(code, reason)

    def _configured(self, context: Any) -> Session:
        session = self._sessions.get(context.peer())
        if session is None:
            raise UnsupportedError("nodewright's stand-in for the AWS plugin was asked before it was configured")
        return session

    def _forget_the_oldest(self) -> None:
        """Engines do not say goodbye; one that is still at work is never this many configurations old."""
        for known in (self._sessions, self._engines):
            for peer in list(known)[:-ENGINES_REMEMBERED]:
                del known[peer]

    def _region(self, context: Any, properties: Properties) -> Region:
        name = properties.get("region")
        return self._configured(context).region(name if isinstance(name, str) else None)

    def _resource(self, request: Any) -> Resource:
        token = request.type or request.urn.split("::")[2].rsplit("$", 1)[-1]
        resource = PERFORMED.get(token)
        if resource is None:
            raise UnsupportedError(
                f"{token}: nodewright's stand-in for the AWS plugin performs only {', '.join(sorted(PERFORMED))}; "
                "install the official plugin for anything else"
            )
        return resource


def _announce(engine_address: str, endpoints: list[str]) -> None:
    """Say in the engine's progress display what this is; never a reason to fail."""
    if not engine_address:
        return
    try:
        with grpc.insecure_channel(engine_address) as channel:
            engine_pb2_grpc.EngineStub(channel).Log(
                engine_pb2.LogRequest(
                    severity=engine_pb2.INFO,
                    message=ANNOUNCEMENT.format(endpoints=", ".join(endpoints)),
                    ephemeral=True,
                ),
                timeout=2,
            )
    except grpc.RpcError:
        return


def _told(doing: str, resource: Resource, identity: str, error: Exception) -> str:
    """An error in the shape that Terraform gives it and the official plugin passes on."""
    which = f" ({identity})" if identity else ""
    return f"1 error occurred:\n\t* {doing} {resource.noun}{which}: {error}\n\n"


def _name(urn: str) -> str:
    return urn.rsplit("::", 1)[-1]


def _check_response(inputs: Any, failures: list[Failure]) -> Any:
    told = [provider_pb2.CheckFailure(property=one.property, reason=one.reason) for one in failures]
    return provider_pb2.CheckResponse(inputs=inputs, failures=told)

"""The types of core/v1 that are about volumes, with the fields that checks read."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.typed.fields import Amounts, Labels, OptionalNumber, Part, Parts, Raw, Text, Texts, Truth
from webhook.typed.view import Typed


class VolumeMount(Typed):
    """core/v1 VolumeMount."""

    name = Text()
    mount_path = Text()
    sub_path = Text()
    sub_path_expr = Text()
    read_only = Truth()

    def path_in_volume(self, file: str) -> str:
        """Return the path in the volume of a file of the container; "" if the mount does not have the file. A mount
        with a subPath must be the file itself.
        """
        folder = self.mount_path.rstrip("/")
        if not folder:
            return ""
        if self.sub_path:
            return self.sub_path if file == folder else ""
        return file[len(folder) + 1 :] if file.startswith(f"{folder}/") else ""


class VolumeClaimSource(Typed):
    """core/v1 PersistentVolumeClaimVolumeSource."""

    claim_name = Text()
    read_only = Truth()


class EmptyDir(Typed):
    """core/v1 EmptyDirVolumeSource."""

    medium = Text()
    size_limit = Raw()


class VolumeResources(Typed):
    """core/v1 VolumeResourceRequirements."""

    requests = Amounts()


class VolumeSelector(Typed):
    """meta/v1 LabelSelector of a PersistentVolumeClaim."""

    match_labels = Labels()


class VolumeClaimSpec(Typed):
    """core/v1 PersistentVolumeClaimSpec."""

    access_modes = Texts()
    resources = Part(VolumeResources)
    selector = Part(VolumeSelector)
    storage_class_name = Text()
    volume_name = Text()


class VolumeClaimTemplate(Typed):
    """core/v1 PersistentVolumeClaimTemplate."""

    spec = Part(VolumeClaimSpec)


class EphemeralVolume(Typed):
    """core/v1 EphemeralVolumeSource."""

    volume_claim_template = Part(VolumeClaimTemplate)


class HostPath(Typed):
    """core/v1 HostPathVolumeSource."""

    path_on_host = Text(name="path")


class KeyToPath(Typed):
    """core/v1 KeyToPath."""

    key = Text()
    file_path = Text(name="path")
    mode = OptionalNumber()


class ConfigMapVolume(Typed):
    """core/v1 ConfigMapVolumeSource."""

    name = Text()
    items = Parts(KeyToPath)
    optional = Truth()
    default_mode = OptionalNumber()


class Projection(Typed):
    """core/v1 ConfigMapProjection and SecretProjection: a ConfigMap or a Secret of a projected volume."""

    name = Text()
    items = Parts(KeyToPath)
    optional = Truth()


class SecretVolume(Typed):
    """core/v1 SecretVolumeSource."""

    secret_name = Text()
    items = Parts(KeyToPath)
    optional = Truth()
    default_mode = OptionalNumber()


class VolumeProjection(Typed):
    """core/v1 VolumeProjection."""

    config_map = Part(Projection)
    secret = Part(Projection)


class ProjectedVolume(Typed):
    """core/v1 ProjectedVolumeSource."""

    sources = Parts(VolumeProjection)

    @property
    def config_maps(self) -> Iterator[Projection]:
        return (each.config_map for each in self.sources)

    @property
    def secrets(self) -> Iterator[Projection]:
        return (each.secret for each in self.sources)


class Volume(Typed):
    """core/v1 Volume."""

    name = Text()
    config_map = Part(ConfigMapVolume)
    secret = Part(SecretVolume)
    projected = Part(ProjectedVolume)
    host_path = Part(HostPath)
    persistent_volume_claim = Part(VolumeClaimSource)
    empty_dir = Part(EmptyDir)
    ephemeral = Part(EphemeralVolume)

    @property
    def source(self) -> str:
        """Return the name of the field with the volume's source, such as `emptyDir`; "" if there is no source."""
        return next((field for field, value in self.json.items() if field != "name" and value is not None), "")

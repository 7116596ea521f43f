"""Launch template data goes to EC2 in its spelling, and comes back in the program's."""

from engine.sandbox.aws.launch_template_data import known_data, request_data

PROGRAM = {
    "imageId": "ami-1",
    "userData": "QQ==",
    "ebsOptimized": "true",
    "vpcSecurityGroupIds": ["sg-2", "sg-1"],
    "blockDeviceMappings": [
        {"deviceName": "/dev/xvda", "ebs": {"volumeSize": 100, "volumeType": "gp3", "deleteOnTermination": "true"}}
    ],
    "networkInterfaces": [{"deviceIndex": 0, "associatePublicIpAddress": "false", "securityGroups": ["sg-1"]}],
    "tagSpecifications": [{"resourceType": "volume", "tags": {"b": "2", "a": "1"}}],
    "metadataOptions": {"httpTokens": "required", "httpPutResponseHopLimit": 2},
    "instanceMarketOptions": {"marketType": "spot", "spotOptions": {"maxPrice": "0.5"}},
}
EC2 = {
    "ImageId": "ami-1",
    "UserData": "QQ==",
    "EbsOptimized": True,
    "SecurityGroupIds": ["sg-2", "sg-1"],
    "BlockDeviceMappings": [
        {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 100, "VolumeType": "gp3", "DeleteOnTermination": True}}
    ],
    "NetworkInterfaces": [{"DeviceIndex": 0, "AssociatePublicIpAddress": False, "Groups": ["sg-1"]}],
    "TagSpecifications": [{"ResourceType": "volume", "Tags": [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}]}],
    "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 2},
    "InstanceMarketOptions": {"MarketType": "spot", "SpotOptions": {"MaxPrice": "0.5"}},
}


def test_a_program_is_put_into_ec2s_spelling() -> None:
    assert request_data(PROGRAM) == EC2


def test_ec2s_spelling_is_put_back_into_the_programs_without_knowing_the_program() -> None:
    assert known_data(EC2, {}) == PROGRAM


def test_an_order_or_a_spelling_of_ec2s_own_is_no_drift() -> None:
    answered = {
        **EC2,
        "SecurityGroupIds": ["sg-1", "sg-2"],
        "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": "2"},
    }
    answered["TagSpecifications"] = [*EC2["TagSpecifications"], {"ResourceType": "launch-template", "Tags": []}]
    assert known_data(answered, PROGRAM) == PROGRAM


def test_what_was_changed_or_dropped_in_ec2_shows() -> None:
    answered = {key: value for key, value in EC2.items() if key != "InstanceMarketOptions"} | {"ImageId": "ami-2"}
    seen = known_data(answered, PROGRAM)
    assert seen["imageId"] == "ami-2"
    assert seen["instanceMarketOptions"] == {}
    assert seen["userData"] == "QQ=="


def test_user_data_is_sent_even_when_there_is_none_and_its_silence_is_no_drift() -> None:
    assert request_data({"imageId": "ami-1"}) == {"ImageId": "ami-1", "UserData": ""}
    assert known_data({"ImageId": "ami-1"}, {"imageId": "ami-1", "userData": ""}) == {
        "imageId": "ami-1",
        "userData": "",
    }
